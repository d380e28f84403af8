// src/cost/layer_price.h
//
// Seconds of a layer on one micro-batch, from its operations (model/operation.h): a roofline per operation,
//   launch + max(flops / (peak x efficiency(flops)), bytes / (memory bandwidth x efficiency(bytes))),
// after Williams, Waterman and Patterson 2009, with efficiencies by size as in Isaev et al. 2023 (Calculon). Sums of a
// tensor-parallel group go over the link of the group.
// Threads: functions only.
#pragma once

#include "cluster/cluster.h"
#include "cost/arithmetic.h"
#include "cost/group_link.h"
#include "cost/price.h"
#include "cost/stack.h"
#include "model/spec.h"

namespace penstock::cost {

struct LayerRequest {
  const cluster::Device& device;
  Arithmetic arithmetic;
  int64_t samples = 1;             // of a micro-batch
  int64_t length = 1;              // tokens of a sample
  int64_t tensor = 1;              // size of the tensor-parallel group
  bool sequence_parallel = false;  // what the group replicates is split along the sequence (Korthikanti et al. 2022)
  bool selective = false;          // the core of attention runs again before its backward
  GroupLink tensor_link{};         // of the tensor-parallel group
  Stack stack{};
};

struct LayerPrices {
  Price forward, backward_input, backward_weight;
  // Of these, waiting for the tensor-parallel group.
  Price forward_reduce, backward_reduce;
  // What a backward of both halves takes less than the two apart: communication beside compute (Stack).
  double hidden_seconds = 0;
};

LayerPrices PriceLayer(const model::LayerSpec& layer, const LayerRequest& request);

// One operation that is bound by memory: launch + bytes / (bandwidth x efficiency).
Price MemoryBound(const cluster::Device& device, double bytes);

}  // namespace penstock::cost
