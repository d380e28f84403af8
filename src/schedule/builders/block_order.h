// src/schedule/builders/block_order.h
//
// Orders over contiguous blocks of stages: a position treats its V chunks as one share and passes a micro-batch
// through all of them before it turns to the next, so that builders of this kind write one list per position.
#pragma once

#include "schedule/builder.h"

namespace penstock::schedule {

// The list of one position, in units of its share: every call covers all its stages, forward ascending, backward
// descending.
class ShareList {
 public:
  ShareList(ComputeList& list, int first_stage, int chunks)
      : list_(list), first_(first_stage), last_(first_stage + chunks - 1) {}
  void Forward(int micro_batch) {
    for (int s = first_; s <= last_; ++s) list_.Forward(s, micro_batch);
  }
  void Backward(int micro_batch) {
    for (int s = last_; s >= first_; --s) list_.Backward(s, micro_batch);
  }
  void BackwardInput(int micro_batch) {
    for (int s = last_; s >= first_; --s) list_.BackwardInput(s, micro_batch);
  }
  void BackwardWeight(int micro_batch) {
    for (int s = last_; s >= first_; --s) list_.BackwardWeight(s, micro_batch);
  }

 private:
  ComputeList& list_;
  int first_, last_;
};

// `write(position, share)` fills the list of each position. The placement is the shape's.
template <typename Write>
ComputeOrder OrderOfShares(const PipelineShape& shape, Write write) {
  ComputeOrder order;
  order.placement = MakePlacement(shape.placement, shape.ranks, shape.stages());
  order.positions.resize(shape.ranks);
  for (int d = 0; d < shape.ranks; ++d) {
    ShareList share(order.positions[d], d * shape.chunks, shape.chunks);
    write(d, share);
  }
  return order;
}

// (M + P - 1)(T_F + T_B) with the times of a share: GPipe, and 1F1B whatever its warm-up.
inline std::optional<Rational> FlushMakespan(const PipelineShape& shape, const UniformCosts& costs) {
  if (costs.hop != Rational(0)) return std::nullopt;
  return Rational(shape.micro_batches + shape.ranks - 1) * Rational(shape.chunks) * (costs.forward + costs.backward());
}

}  // namespace penstock::schedule
