// src/schedule/builders/one_f_one_b.h
//
// One forward, one backward: a warm-up of forwards, then forward and backward in turn, then the remaining backwards.
// 1F1B and its variants differ in the length of the warm-up only.
#pragma once

#include <algorithm>

#include "schedule/builders/block_order.h"

namespace penstock::schedule {

// `warm_up(position)` forwards before the first backward's forward; clipped to M.
template <typename WarmUp>
ComputeOrder OneForwardOneBackward(const PipelineShape& shape, WarmUp warm_up) {
  const int m = shape.micro_batches;
  return OrderOfShares(shape, [&](int position, ShareList& share) {
    const int w = std::min(m, warm_up(position));
    for (int k = 0; k < w; ++k) share.Forward(k);
    for (int k = 0; k < m; ++k) {
      if (w + k < m) share.Forward(w + k);
      share.Backward(k);
    }
  });
}

}  // namespace penstock::schedule
