// src/schedule/builders/zb_h1.cc
//
// ZB-H1 (ZB1P): zero-bubble order within the activation memory of 1F1B. Qi et al., ICLR 2024, section 2.
//   P positions, M micro-batches, F, I, W = times of one position's share (its V stages, contiguous)
//   makespan           M(F + I + W) + (P - 1) max(F, I, F + I - W)     exact for M >= P, all costs
//   largest span       the same                                       exact for M >= P, W <= F and W <= I
//   live activations   min(M, P) on every position                     exact for all M
#include "schedule/builders/zero_bubble_order.h"

namespace penstock::schedule {
namespace {

ComputeOrder Build(const PipelineShape& shape) { return DelayedWeightHalves(shape, 1); }

std::optional<Rational> Makespan(const PipelineShape& shape, const UniformCosts& costs) {
  if (costs.hop != Rational(0) || shape.micro_batches < shape.ranks) return std::nullopt;
  const ShareTimes t = TimesOfShare(shape, costs);
  return t.work(shape) + Rational(shape.ranks - 1) * std::max({t.f, t.i, t.f + t.i - t.w});
}

std::optional<Rational> MaxSpan(const PipelineShape& shape, const UniformCosts& costs) {
  if (costs.backward_weight > costs.forward || costs.backward_weight > costs.backward_input) return std::nullopt;
  return Makespan(shape, costs);
}

std::optional<Rational> Peak(const PipelineShape& shape, int) {
  return Rational(std::min(shape.micro_batches, shape.ranks));
}

const RegisterBuilder kRegister{{
    .name = "zb-h1",
    .summary = "split backward, weight halves fill the bubble, memory of 1F1B",
    .source = "Qi et al., ICLR 2024, section 2 (ZB-H1)",
    .placements = {"block", "linear"},
    .splits_backward = true,
    .default_chunks = 1,
    .refuse = {},
    .build = &Build,
    .closed_forms = {.makespan = &Makespan, .max_span = &MaxSpan, .peak_micro_batches = &Peak},
    .contract = {},
}};

}  // namespace
}  // namespace penstock::schedule
