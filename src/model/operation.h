// src/model/operation.h
//
// The operations of a layer's forward, one by one, as a roofline prices them. Their flops add up to the layer's; what
// they move is counted for an implementation that keeps activations in device memory between operations and fuses
// element-wise chains the way the field does (bias + activation, dropout + residual).
// Sizes are elements (SizeFormula, model/size_formula.h): cost turns them into bytes and seconds.
#pragma once

#include <cstdint>
#include <string>

#include "model/size_formula.h"

namespace penstock::model {

enum class OperationKind : uint8_t {
  gemm,           // products with weights, convolutions: backward is an input half and a weight half of as many flops
  attention,      // products without weights: the input half of backward has twice the flops, there is no weight half
  memory,         // bound by what it moves: norms, activations, lookups, pooling, softmax
  tensor_reduce,  // sum over a tensor-parallel group: `moved` elements on each member. No cost without such a group
};

// What a tensor-parallel group of t ranks does with an operation.
enum class TensorSplit : uint8_t {
  split,       // each member has 1/t of flops, weights and moved elements (heads, columns, rows)
  replicated,  // every member does all of it; with sequence parallelism 1/t of the tokens each
};

struct Operation {
  std::string name{};  // "attn.qkv"
  OperationKind kind = OperationKind::memory;
  SizeFormula flops{};    // of the forward
  SizeFormula moved{};    // activation elements read and written by the forward
  int64_t weights = 0;    // parameter elements read by the forward
  // Elements the input half of backward moves, as a multiple of `moved` (a weight half moves as much as the forward).
  double backward_moved = 1;
  TensorSplit split = TensorSplit::split;
  bool selective = false;  // run again before the backward under selective recomputation (the core of attention)
};

}  // namespace penstock::model
