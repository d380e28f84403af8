// src/schedule/builders/zb_v.cc
//
// ZB-V: two chunks per position on a V, so that the first and the last stage share position 0; split backward, the
// activation memory of 1F1B. Qi et al., "Zero bubble pipeline parallelism", ICLR 2024; order as in PyTorch's
// ScheduleZBVZeroBubble.
//   P positions, M micro-batches, F, I, W = times of one position's share (both chunks)
//   makespan           M(F + I + W) + (P - 1) max(I / 2, I - W)      exact for M >= 2P - 1, W <= F <= I
//   largest span       M(F + I + W) + (P - 1)(I - W)                 exact for M >= 2P - 1, W <= F <= I
//   live activations   P on every position                           exact for M >= 2P - 1
// The order is that of max(M, 2P - 1) micro-batches with those beyond M left out.
#include <algorithm>
#include <array>

#include "schedule/builder.h"
#include "schedule/builders/zero_bubble_order.h"

namespace penstock::schedule {
namespace {

std::optional<std::string> Refuse(const PipelineShape& shape) {
  if (shape.chunks != 2) return fmt::format("a V has 2 chunks per rank, not {}", shape.chunks);
  return std::nullopt;
}

// The list of one position: c0 on the way down, c1 on the way up.
class Writer {
 public:
  Writer(ComputeList& list, int c0, int c1, int micro_batches, int padded)
      : list_(list), stages_{c0, c1}, micro_batches_(micro_batches), padded_(padded) {}

  void Forward(int c) {
    const int m = forwards_[c]++;
    if (m < micro_batches_) list_.Forward(stages_[c], m);
  }
  void Input(int c) {
    const int m = inputs_[c]++;
    if (m < micro_batches_) list_.BackwardInput(stages_[c], m);
  }
  void Weight(int c) {
    const int m = weights_[c]++;
    if (m < micro_batches_) list_.BackwardWeight(stages_[c], m);
  }
  void InputWeight(int c) {
    Input(c);
    Weight(c);
  }
  bool forwards_left(int c) const { return forwards_[c] < padded_; }
  void RemainingWeights(int c) {
    while (weights_[c] < padded_) Weight(c);
  }

 private:
  ComputeList& list_;
  std::array<int, 2> stages_;
  int micro_batches_, padded_;
  std::array<int, 2> forwards_{}, inputs_{}, weights_{};
};

ComputeOrder Build(const PipelineShape& shape) {
  const int p = shape.ranks;
  ComputeOrder order;
  order.placement = MakePlacement(shape.placement, p, shape.stages());
  order.positions.resize(p);
  for (int d = 0; d < p; ++d) {
    Writer w(order.positions[d], d, 2 * p - 1 - d, shape.micro_batches, std::max(shape.micro_batches, 2 * p - 1));
    for (int k = 0; k < 2 * (p - d) - 1; ++k) w.Forward(0);
    for (int k = 0; k < d; ++k) {
      w.Forward(1);
      w.Forward(0);
    }
    for (int k = 0; k < p - d; ++k) {
      w.Forward(1);
      w.InputWeight(1);
    }
    while (w.forwards_left(1)) {
      if (w.forwards_left(0)) w.Forward(0);
      w.InputWeight(0);
      w.Forward(1);
      w.InputWeight(1);
    }
    for (int k = 0; k < d; ++k) {
      w.Input(0);
      w.Input(1);
    }
    for (int k = 0; k < p - d; ++k) w.InputWeight(0);
    w.RemainingWeights(1);
    w.RemainingWeights(0);
  }
  return order;
}

bool InDomain(const PipelineShape& shape) { return shape.micro_batches >= 2 * shape.ranks - 1; }
bool InDomain(const PipelineShape& shape, const UniformCosts& costs) {
  return InDomain(shape) && costs.hop == Rational(0) && costs.backward_weight <= costs.forward &&
         costs.forward <= costs.backward_input;
}

std::optional<Rational> Makespan(const PipelineShape& shape, const UniformCosts& costs) {
  if (!InDomain(shape, costs)) return std::nullopt;
  const ShareTimes t = TimesOfShare(shape, costs);
  return t.work(shape) + Rational(shape.ranks - 1) * std::max(t.i / Rational(2), t.i - t.w);
}

std::optional<Rational> MaxSpan(const PipelineShape& shape, const UniformCosts& costs) {
  if (!InDomain(shape, costs)) return std::nullopt;
  const ShareTimes t = TimesOfShare(shape, costs);
  return t.work(shape) + Rational(shape.ranks - 1) * (t.i - t.w);
}

std::optional<Rational> Peak(const PipelineShape& shape, int) {
  if (!InDomain(shape)) return std::nullopt;
  return Rational(shape.ranks);
}

const RegisterBuilder kRegister{{
    .name = "zb-v",
    .summary = "split backward on a V of two chunks: no bubble inside a rank's span, memory of 1F1B",
    .source = "Qi et al., ICLR 2024 (ZB-V)",
    .placements = {"v"},
    .splits_backward = true,
    .default_chunks = 2,
    .refuse = &Refuse,
    .build = &Build,
    .closed_forms = {.makespan = &Makespan, .max_span = &MaxSpan, .peak_micro_batches = &Peak},
    .contract = {},
}};

}  // namespace
}  // namespace penstock::schedule
