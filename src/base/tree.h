// src/base/tree.h
//
// The canonical summation tree over micro-batches (docs/numerics.md R2-R4): node [lo, hi) is one leaf when
// hi - lo = 1, else T[lo, mid) + T[mid, hi) with mid = lo + ceil((hi - lo) / 2). Node arithmetic only; no tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace penstock {

struct TreeNode {
  int32_t lo = 0;
  int32_t hi = 0;
  int32_t size() const { return hi - lo; }
  int32_t mid() const { return lo + (hi - lo + 1) / 2; }
  TreeNode left() const { return {lo, mid()}; }
  TreeNode right() const { return {mid(), hi}; }
  friend bool operator==(const TreeNode&, const TreeNode&) = default;
  friend auto operator<=>(const TreeNode&, const TreeNode&) = default;
};

// The parent of `node` in the tree over [0, n). `node` must be a node of that tree and not its root.
TreeNode TreeParent(TreeNode node, int32_t n);
// The sibling of `node` in the tree over [0, n).
TreeNode TreeSibling(TreeNode node, int32_t n);
// Is [lo, hi) a node of the tree over [0, n)?
bool IsTreeNode(TreeNode node, int32_t n);

// The maximal nodes of the tree over [0, n) all of whose leaves are in `leaves` (sorted, unique): what a rank that
// owns these micro-batches holds when all its leaves have come in. Ascending by lo.
std::vector<TreeNode> MaximalNodes(const std::vector<int32_t>& leaves, int32_t n);

// The most partial sums alive at once when leaves arrive in the given order and siblings merge at once (the leaf that
// just arrived counts as one).
int PeakPartialSums(const std::vector<int32_t>& arrival, int32_t n);

// T over values[lo, hi) of any type with +. `absent(i)` leaves are skipped, not added as zero; returns false when
// every leaf is absent (then `out` is untouched).
template <typename T, typename Absent>
bool TreeSum(const std::vector<T>& values, int32_t lo, int32_t hi, const Absent& absent, T& out) {
  if (hi - lo <= 0) return false;
  if (hi - lo == 1) {
    if (absent(lo)) return false;
    out = values[lo];
    return true;
  }
  const int32_t mid = TreeNode{lo, hi}.mid();
  T a{}, b{};
  const bool has_a = TreeSum(values, lo, mid, absent, a);
  const bool has_b = TreeSum(values, mid, hi, absent, b);
  if (has_a && has_b) {
    out = a + b;
  } else if (has_a) {
    out = a;
  } else if (has_b) {
    out = b;
  }
  return has_a || has_b;
}

template <typename T>
T TreeSum(const std::vector<T>& values) {
  PENSTOCK_CHECK(!values.empty());
  T out{};
  TreeSum(
      values, 0, static_cast<int32_t>(values.size()), [](int32_t) { return false; }, out);
  return out;
}

}  // namespace penstock
