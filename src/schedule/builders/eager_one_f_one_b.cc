// src/schedule/builders/eager_one_f_one_b.cc
//
// 1F1B with a doubled warm-up, which hides the latency of hops behind forwards that wait already. Zhuang et al.,
// MLSys 2023 (eager-1F1B).
//   P positions, d = position, M micro-batches, F and B = times of one position's share (its V stages, contiguous)
//   warm-up            2(P - 1 - d) forwards
//   makespan           (M + P - 1)(F + B)       bubble (P - 1)(F + B)
//   live activations   min(M, 2(P - 1 - d) + 1)
// Exact for all P, V, M >= 1 and all costs, without latency.
#include "schedule/builders/one_f_one_b.h"

namespace penstock::schedule {
namespace {

ComputeOrder Build(const PipelineShape& shape) {
  return OneForwardOneBackward(shape, [&](int d) { return 2 * (shape.ranks - 1 - d); });
}

std::optional<Rational> Peak(const PipelineShape& shape, int d) {
  return Rational(std::min(shape.micro_batches, 2 * (shape.ranks - 1 - d) + 1));
}

const RegisterBuilder kRegister{{
    .name = "eager-1f1b",
    .summary = "1F1B with a doubled warm-up: hides hop latency for more activations",
    .source = "Zhuang et al., MLSys 2023 (eager-1F1B)",
    .placements = {"block", "linear"},
    .splits_backward = false,
    .default_chunks = 1,
    .refuse = {},
    .build = &Build,
    .closed_forms = {.makespan = &FlushMakespan, .max_span = &FlushMakespan, .peak_micro_batches = &Peak},
    .contract = {},
}};

}  // namespace
}  // namespace penstock::schedule
