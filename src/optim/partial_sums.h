// src/optim/partial_sums.h
//
// The gradient of one parameter use, summed over micro-batches in the canonical tree (docs/numerics.md R1-R4). A
// tensor per maximal node is kept; two siblings merge as soon as both are there, in place into the left one, in
// whatever order micro-batches finish. Buffers alive: base/tree.h PeakPartialSums (the memory model's line).
//
//   PartialSums sums(G, PartialSums::Mode::tree, at::kFloat);
//   sums.Add(j, std::move(gradient));                 // leaf j: any floating dtype, widened at once
//   for (auto& [node, tensor] : sums.Take()) ...      // maximal nodes, ascending; the object is empty again
// The owner of a shard completes the tree with what all holders bring (R4), and the uses of a tied parameter (R5),
// with the same class:
//   PartialSums whole(G, ...);  whole.AddNode(node, slice);  ...  at::Tensor gradient = whole.TakeRoot();
//
// Ownership: a tensor handed over is written in place only when nobody else refers to it or its storage; otherwise it
// is copied when (and only when) it becomes a left operand. Memory that libtorch does not own (at::from_blob) must be
// passed with Memory::borrowed; it must stay valid until it is merged or taken.
// Threads: one thread at a time. Errors: InternalError for a leaf that comes twice, a range that is not a node, or
// shapes that differ.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/tree.h"

namespace penstock::optim {

class PartialSums {
 public:
  // tree: bits as in docs/numerics.md. running: one buffer, added in order of arrival (fast mode; order is not
  // reproducible).
  enum class Mode { tree, running };
  enum class Memory { owned, borrowed };

  // `num_leaves`: G, the micro-batches of the whole step (not of this rank). `accumulate`: at::kFloat or at::kDouble.
  PartialSums(int32_t num_leaves, Mode mode, at::ScalarType accumulate);

  void Add(int32_t leaf, at::Tensor gradient, Memory memory = Memory::owned) {
    AddNode({leaf, leaf + 1}, std::move(gradient), memory);
  }
  // An undefined tensor is a node without any existing leaf (frozen use, expert without tokens): it is skipped in
  // additions, not added as zero, but counts as covered.
  void AddNode(TreeNode node, at::Tensor sum, Memory memory = Memory::owned);
  void AddAbsent(int32_t leaf) { AddNode({leaf, leaf + 1}, {}); }

  // The sums that are there, ascending, and forgets them. Mode running: one sum over whatever was added; its node is
  // the hull [first leaf, last leaf + 1).
  std::vector<std::pair<TreeNode, at::Tensor>> Take();
  // The complete sum; every leaf must have been added. Undefined when all leaves are absent.
  at::Tensor TakeRoot();

  int32_t num_leaves() const { return num_leaves_; }
  // Leaves added since the last Take, in tree mode and in running mode: the coverage of the gradient.
  int32_t covered() const { return covered_; }
  // Tensors alive now, and at most since construction (the leaf that just arrived counts as one).
  int buffers() const { return buffers_; }
  int peak_buffers() const { return peak_buffers_; }

 private:
  struct Sum {
    at::Tensor tensor;
    bool borrowed = false;
  };
  static void MergeInto(Sum& left, Sum&& right);
  void Cover(TreeNode node);

  int32_t num_leaves_;
  Mode mode_;
  at::ScalarType accumulate_;
  std::map<TreeNode, Sum> sums_;  // tree mode: disjoint nodes; running mode: at most one entry
  std::vector<bool> leaves_;      // which leaves have come in
  int32_t covered_ = 0;
  int buffers_ = 0;
  int peak_buffers_ = 0;
};

}  // namespace penstock::optim
