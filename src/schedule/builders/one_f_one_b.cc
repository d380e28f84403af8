// src/schedule/builders/one_f_one_b.cc
//
// 1F1B with flush. Narayanan et al., SC 2021, section 2.2.1 (PipeDream-Flush).
//   P positions, d = position, M micro-batches, F and B = times of one position's share (its V stages, contiguous)
//   warm-up            P - 1 - d forwards
//   makespan           (M + P - 1)(F + B)       bubble (P - 1)(F + B)
//   live activations   min(M, P - d)
// Exact for all P, V, M >= 1 and all costs, without latency: a hop costs 1F1B more than GPipe (eager-1f1b does not).
#include "schedule/builders/one_f_one_b.h"

namespace penstock::schedule {
namespace {

ComputeOrder Build(const PipelineShape& shape) {
  return OneForwardOneBackward(shape, [&](int d) { return shape.ranks - 1 - d; });
}

std::optional<Rational> Peak(const PipelineShape& shape, int d) {
  return Rational(std::min(shape.micro_batches, shape.ranks - d));
}

const RegisterBuilder kRegister{{
    .name = "1f1b",
    .summary = "one forward, one backward, flush at the end",
    .source = "Narayanan et al., SC 2021, section 2.2.1",
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
