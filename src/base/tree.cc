#include "base/tree.h"

#include <algorithm>
#include <set>

namespace penstock {
namespace {

void Collect(TreeNode node, const std::vector<int32_t>& leaves, std::vector<TreeNode>& out) {
  const auto first = std::lower_bound(leaves.begin(), leaves.end(), node.lo);
  const auto last = std::lower_bound(first, leaves.end(), node.hi);
  const auto owned = static_cast<int32_t>(last - first);
  if (owned == 0) return;
  if (owned == node.size()) {
    out.push_back(node);
    return;
  }
  Collect(node.left(), leaves, out);
  Collect(node.right(), leaves, out);
}

}  // namespace

TreeNode TreeParent(TreeNode node, int32_t n) {
  TreeNode at{0, n};
  PENSTOCK_CHECK(node != at, "the root [0, {}) has no parent", n);
  while (at.size() > 1) {
    const TreeNode child = node.lo < at.mid() ? at.left() : at.right();
    if (child == node) return at;
    at = child;
  }
  throw InternalError(fmt::format("[{}, {}) is not a node of the tree over {} leaves", node.lo, node.hi, n));
}

TreeNode TreeSibling(TreeNode node, int32_t n) {
  const TreeNode parent = TreeParent(node, n);
  return parent.left() == node ? parent.right() : parent.left();
}

bool IsTreeNode(TreeNode node, int32_t n) {
  if (node.lo < 0 || node.hi > n || node.lo >= node.hi) return false;
  TreeNode at{0, n};
  while (at != node && at.size() > 1) at = node.lo < at.mid() ? at.left() : at.right();
  return at == node;
}

std::vector<TreeNode> MaximalNodes(const std::vector<int32_t>& leaves, int32_t n) {
  std::vector<TreeNode> out;
  if (n > 0) Collect({0, n}, leaves, out);
  return out;
}

int PeakPartialSums(const std::vector<int32_t>& arrival, int32_t n) {
  std::set<TreeNode> alive;
  size_t peak = 0;
  for (const int32_t leaf : arrival) {
    TreeNode node{leaf, leaf + 1};
    alive.insert(node);
    peak = std::max(peak, alive.size());
    while (node != TreeNode{0, n}) {
      const auto sibling = alive.find(TreeSibling(node, n));
      if (sibling == alive.end()) break;
      const TreeNode parent = TreeParent(node, n);
      alive.erase(sibling);
      alive.erase(node);
      alive.insert(parent);
      node = parent;
    }
  }
  return static_cast<int>(peak);
}

}  // namespace penstock
