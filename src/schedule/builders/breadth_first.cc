// src/schedule/builders/breadth_first.cc
//
// Looped breadth-first pipeline: each chunk is visited once per pass, with all micro-batches; backward micro-batches
// in reverse. Lamy-Poirier, MLSys 2023 (arXiv 2211.05953); reversal as in PyTorch's ScheduleLoopedBFS.
//   P positions, V chunks, M micro-batches, f and b = times of one chunk
//   makespan           ((V - 1) max(M, P) + M + P - 1)(f + b)      bubble (P - 1)(f + b) when M >= P
//   live activations   M on every position
// Exact for all P, V, M >= 1 and all costs, without latency.
#include "schedule/builders/layered_order.h"

namespace penstock::schedule {
namespace {

ComputeOrder Build(const PipelineShape& shape) { return StageByStage(shape, /*reverse_backward=*/true); }

std::optional<Rational> Peak(const PipelineShape& shape, int) { return Rational(shape.micro_batches); }

const RegisterBuilder kRegister{{
    .name = "breadth-first",
    .summary = "all micro-batches through a chunk before the next, on a loop; backward in reverse order",
    .source = "Lamy-Poirier, MLSys 2023, arXiv 2211.05953",
    .placements = {"loop"},
    .splits_backward = false,
    .default_chunks = 2,
    .refuse = {},
    .build = &Build,
    .closed_forms = {.makespan = &LoopMakespan, .max_span = &LoopMakespan, .peak_micro_batches = &Peak},
    .contract = {},
}};

}  // namespace
}  // namespace penstock::schedule
