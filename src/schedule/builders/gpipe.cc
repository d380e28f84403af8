// src/schedule/builders/gpipe.cc
//
// GPipe: all forwards, all backwards, flush. Huang et al., NeurIPS 2019; backward order first in, first out, as in
// PipeFisher (Osawa et al., MLSys 2023).
//   P positions, M micro-batches, F and B = times of one position's share (its V stages, contiguous)
//   makespan           (M + P - 1)(F + B)       bubble (P - 1)(F + B)
//   live activations   M on every position
// Exact for all P, V, M >= 1 and all costs.
#include "schedule/builders/block_order.h"

namespace penstock::schedule {
namespace {

ComputeOrder Build(const PipelineShape& shape) {
  return OrderOfShares(shape, [&](int, ShareList& share) {
    for (int m = 0; m < shape.micro_batches; ++m) share.Forward(m);
    for (int m = 0; m < shape.micro_batches; ++m) share.Backward(m);
  });
}

std::optional<Rational> Peak(const PipelineShape& shape, int) { return Rational(shape.micro_batches); }

const RegisterBuilder kRegister{{
    .name = "gpipe",
    .summary = "all forwards, then all backwards",
    .source = "Huang et al., NeurIPS 2019 (GPipe)",
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
