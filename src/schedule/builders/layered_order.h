// src/schedule/builders/layered_order.h
//
// Stage by stage: all micro-batches through a stage before the position's next stage.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace penstock::schedule {

// Positions run their stages in ascending order forward, descending order backward; micro-batches ascending, or in
// the backward descending with `reverse_backward`. The placement is the shape's.
inline ComputeOrder StageByStage(const PipelineShape& shape, bool reverse_backward) {
  const int m = shape.micro_batches;
  ComputeOrder order;
  order.placement = MakePlacement(shape.placement, shape.ranks, shape.stages());
  order.positions.resize(shape.ranks);
  for (int s = 0; s < shape.stages(); ++s)
    for (int i = 0; i < m; ++i) order.positions[order.placement[s]].Forward(s, i);
  for (int s = shape.stages() - 1; s >= 0; --s)
    for (int i = 0; i < m; ++i) order.positions[order.placement[s]].Backward(s, reverse_backward ? m - 1 - i : i);
  return order;
}

// ((V - 1) max(M, P) + M + P - 1)(f + b) on a loop: with M < P every turn of the loop waits P - M slots.
// Lamy-Poirier, arXiv 2106.02679 (modular pipeline parallelism).
inline std::optional<Rational> LoopMakespan(const PipelineShape& shape, const UniformCosts& costs) {
  if (costs.hop != Rational(0)) return std::nullopt;
  const int64_t m = shape.micro_batches, p = shape.ranks, v = shape.chunks;
  return Rational((v - 1) * std::max(m, p) + m + p - 1) * (costs.forward + costs.backward());
}

}  // namespace penstock::schedule
