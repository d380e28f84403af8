// src/comm/reduce_plan.h
//
// In which order a reduction adds its sources: a list of additions over sources and scratch slots, made once per
// collective and then run block by block over the elements. The order is per element, so neither block size nor who
// runs a block changes bits (docs/numerics.md R2-R4).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "base/tree.h"

namespace penstock::comm {

// An operand: a source (index >= 0) or a scratch slot (~index < 0).
using Operand = int32_t;
constexpr Operand ScratchOperand(int32_t slot) { return ~slot; }

struct Addition {
  int32_t slot;  // slot = a + b; the slot may be one of the operands
  Operand a;
  Operand b;
};

struct ReducePlan {
  std::vector<Addition> additions;
  int32_t num_slots = 0;
  bool empty = false;  // no source at all: the result is zero
  Operand result = 0;
};

// ((s0 + s1) + s2) + ...
ReducePlan FoldPlan(int num_sources);
// T[0, n_leaves) where source i is the partial sum of nodes[i]. InternalError when an entry is not a node of the tree
// or two overlap.
ReducePlan TreePlan(const std::vector<TreeNode>& nodes, int32_t n_leaves);

// A place where a result goes: element e of the reduction is written to data + (e - first) elements.
struct Destination {
  void* data;
  int64_t first;
};

// Reduces elements [begin, end): sources[i] is the address of element 0 of source i. Destinations may be sources (at
// the same element), not overlap them otherwise. `type`: float, double, int32 or int64 (see CanReduce).
void RunReduce(const ReducePlan& plan, at::ScalarType type, const std::vector<const void*>& sources,
               const std::vector<Destination>& destinations, int64_t begin, int64_t end);
bool CanReduce(at::ScalarType type);

}  // namespace penstock::comm
