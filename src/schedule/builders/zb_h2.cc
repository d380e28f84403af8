// src/schedule/builders/zb_h2.cc
//
// ZB-H2 (ZB2P): no bubble between a position's first and last action at equal costs, for twice the activations. Qi et
// al., ICLR 2024, section 2. Behind a barrier before the optimizer a bubble of (P - 1) F stays.
//   P positions, M micro-batches, F, I, W = times of one position's share (its V stages, contiguous)
//   makespan           M(F + I + W) + (P - 1) max(F, I - F, F + I - 2W)    exact for M >= 2P - 1, all costs
//   largest span       M(F + I + W) + (P - 1) max(0, I - F, F + I - 2W)    exact for M >= 2P - 1, all costs
//   live activations   min(M, 2P - 1) on every position                    exact for all M
#include "schedule/builders/zero_bubble_order.h"

namespace penstock::schedule {
namespace {

ComputeOrder Build(const PipelineShape& shape) { return DelayedWeightHalves(shape, 2); }

std::optional<Rational> WithBubble(const PipelineShape& shape, const UniformCosts& costs, bool barrier) {
  if (costs.hop != Rational(0) || shape.micro_batches < 2 * shape.ranks - 1) return std::nullopt;
  const ShareTimes t = TimesOfShare(shape, costs);
  const Rational bubble = std::max({barrier ? t.f : Rational(0), t.i - t.f, t.f + t.i - t.w - t.w});
  return t.work(shape) + Rational(shape.ranks - 1) * bubble;
}

std::optional<Rational> Makespan(const PipelineShape& shape, const UniformCosts& costs) {
  return WithBubble(shape, costs, /*barrier=*/true);
}
std::optional<Rational> MaxSpan(const PipelineShape& shape, const UniformCosts& costs) {
  return WithBubble(shape, costs, /*barrier=*/false);
}

std::optional<Rational> Peak(const PipelineShape& shape, int) {
  return Rational(std::min(shape.micro_batches, 2 * shape.ranks - 1));
}

const RegisterBuilder kRegister{{
    .name = "zb-h2",
    .summary = "split backward, longer warm-up: no bubble inside a rank's span, twice the activations",
    .source = "Qi et al., ICLR 2024, section 2 (ZB-H2)",
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
