// src/schedule/builders/layered.cc
//
// Layered gradient accumulation: all micro-batches through a stage before the next, so that a stage's parameters are
// gathered once, and its gradient is final (and can be reduced) while the position works on its other stages. On a
// loop route this is modular pipeline parallelism. Lamy-Poirier, arXiv 2106.02679.
//   P positions, V stages per position, M micro-batches, f and b = times of one stage
//   makespan, block    (M V + (P - 1)((V - 1) M + 1))(f + b)       a stage's successor waits for all micro-batches
//   makespan, loop     ((V - 1) max(M, P) + M + P - 1)(f + b)      bubble (P - 1)(f + b) when M >= P
//   live activations   M on every position
// Exact for all P, V, M >= 1 and all costs, without latency.
#include "schedule/builders/layered_order.h"

namespace penstock::schedule {
namespace {

ComputeOrder Build(const PipelineShape& shape) { return StageByStage(shape, /*reverse_backward=*/false); }

std::optional<Rational> Makespan(const PipelineShape& shape, const UniformCosts& costs) {
  if (shape.placement == "loop") return LoopMakespan(shape, costs);
  if (costs.hop != Rational(0)) return std::nullopt;
  const int64_t m = shape.micro_batches, p = shape.ranks, v = shape.chunks;
  return Rational(m * v + (p - 1) * ((v - 1) * m + 1)) * (costs.forward + costs.backward());
}

std::optional<Rational> Peak(const PipelineShape& shape, int) { return Rational(shape.micro_batches); }

const RegisterBuilder kRegister{{
    .name = "layered",
    .summary = "all micro-batches through a stage before the next (LGA); on a loop: modular pipeline (MPP)",
    .source = "Lamy-Poirier, arXiv 2106.02679 (LGA, MPP)",
    .placements = {"block", "loop"},
    .splits_backward = false,
    .default_chunks = 2,
    .refuse = {},
    .build = &Build,
    .closed_forms = {.makespan = &Makespan, .max_span = &Makespan, .peak_micro_batches = &Peak},
    .contract = {},
}};

}  // namespace
}  // namespace penstock::schedule
