// src/schedule/builders/zero_bubble_order.h
//
// The handcrafted zero-bubble orders of one chunk per position: 1F1B whose backward is split, with a warm-up h times
// as long and weight halves h d micro-batches behind the input halves.
#pragma once

#include <algorithm>

#include "schedule/builders/block_order.h"

namespace penstock::schedule {

inline ComputeOrder DelayedWeightHalves(const PipelineShape& shape, int h) {
  const int m = shape.micro_batches;
  return OrderOfShares(shape, [&](int d, ShareList& share) {
    const int w = std::min(m, h * (shape.ranks - 1 - d));
    const int delay = std::min(m, h * d);
    for (int k = 0; k < w; ++k) share.Forward(k);
    for (int k = 0; k < m; ++k) {
      if (w + k < m) share.Forward(w + k);
      share.BackwardInput(k);
      if (k >= delay) share.BackwardWeight(k - delay);
    }
    for (int k = m - delay; k < m; ++k) share.BackwardWeight(k);
  });
}

// Times of one position's share.
struct ShareTimes {
  Rational f, i, w;
  Rational work(const PipelineShape& shape) const { return Rational(shape.micro_batches) * (f + i + w); }
};
inline ShareTimes TimesOfShare(const PipelineShape& shape, const UniformCosts& costs) {
  const Rational v(shape.chunks);
  return {v * costs.forward, v * costs.backward_input, v * costs.backward_weight};
}

}  // namespace penstock::schedule
