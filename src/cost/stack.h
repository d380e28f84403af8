// src/cost/stack.h
//
// What a software stack does around the products of a training step, where stacks differ: which communication runs
// beside compute, what is fused, how wide gradients are. Registered by name in stacks.cc; `cluster.stack` of a
// configuration names one. A run of 2021 and one of 2022 on the same machine differ in nothing else.
// Plain data, immutable after start-up; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/registry.h"

namespace penstock::cost {

// Kernels of their own that a stack runs for an operation (model/operation.h) beside what its list counts, which is an
// implementation that fuses all it can: copies between layouts, sums of bias gradients, masks, unfused losses. In
// multiples of the elements that the operation moves.
struct ExtraPasses {
  std::string operation{};  // name, or what it ends in after the last '.'
  double forward = 0, backward = 0;
};

struct Stack {
  static constexpr const char* kRegistryName = "software stack";
  std::string name = "plain";
  std::string summary{};
  std::string source{};

  // The sums of a tensor-parallel group in the backward run beside the weight halves of the products that they follow
  // (column-parallel ones), when both halves are one action; under sequence parallelism the second gather of their
  // inputs beside the input halves.
  bool overlap_tensor = false;
  // What overlapped communication takes from compute, as a share of its own time (it needs cores and memory bandwidth).
  double overlap_cost = 0;
  // A weight-gradient product adds to the sum itself. If not, it writes a gradient of the activations' width, and a
  // pass of its own adds that to the sum.
  bool fused_accumulation = true;
  int gradient_bytes = 0;  // of a summed and reduced gradient in mixed arithmetic; 0: as the arithmetic has it
  // The gradient reduction of data parallelism runs beside the backward of the last micro-batch.
  bool overlap_reduce = false;
  // It starts when the backward of all stages of a rank is over, not stage by stage.
  bool reduce_at_end = false;
  // Copied into one buffer before the reduction and back after it.
  bool flattened_reduce = false;
  // Bytes per parameter that the update moves beyond gradient, master weights and states: unscaling, clipping, copies.
  double update_bytes = 0;
  std::vector<ExtraPasses> passes{};
  // A rank computes on only when the message it sent has arrived.
  bool waits_for_sends = false;
  // Without sequence parallelism a boundary is sent in shares and gathered by the receiving tensor-parallel group.
  bool gather_boundary = false;
};
using RegisterStack = Register<Stack>;

}  // namespace penstock::cost
