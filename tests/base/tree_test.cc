#include "base/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

namespace penstock {
namespace {

// A sum that shows its brackets.
struct Term {
  std::string text;
  friend Term operator+(const Term& a, const Term& b) { return {"(" + a.text + "+" + b.text + ")"}; }
};

std::vector<int32_t> Ascending(int32_t n) {
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(Tree, BracketsFollowTheSpecification) {
  std::vector<Term> v;
  for (const char* name : {"0", "1", "2", "3", "4"}) v.push_back({name});
  EXPECT_EQ(TreeSum(v).text, "(((0+1)+2)+(3+4))") << "mid = lo + ceil((hi - lo) / 2)";
  v.pop_back();
  EXPECT_EQ(TreeSum(v).text, "((0+1)+(2+3))");
}

TEST(Tree, AbsentLeavesAreSkippedNotAdded) {
  const std::vector<Term> v{{"0"}, {"1"}, {"2"}, {"3"}};
  Term out;
  ASSERT_TRUE(TreeSum(
      v, 0, 4, [](int32_t i) { return i == 1 || i == 2; }, out));
  EXPECT_EQ(out.text, "(0+3)");
  out.text = "untouched";
  EXPECT_FALSE(TreeSum(
      v, 0, 4, [](int32_t) { return true; }, out));
  EXPECT_EQ(out.text, "untouched");
}

TEST(Tree, ParentSiblingAndMembership) {
  for (int32_t n = 1; n <= 20; ++n) {
    int nodes = 0;
    for (int32_t lo = 0; lo < n; ++lo) {
      for (int32_t hi = lo + 1; hi <= n; ++hi) {
        const TreeNode node{lo, hi};
        if (!IsTreeNode(node, n)) continue;
        ++nodes;
        if (node == TreeNode{0, n}) continue;
        const TreeNode parent = TreeParent(node, n);
        EXPECT_TRUE(parent.left() == node || parent.right() == node);
        EXPECT_EQ(TreeSibling(TreeSibling(node, n), n), node);
      }
    }
    EXPECT_EQ(nodes, 2 * n - 1) << "a full binary tree over " << n << " leaves";
  }
  EXPECT_FALSE(IsTreeNode({1, 3}, 4));
  EXPECT_THROW(TreeParent({1, 3}, 4), InternalError);
  EXPECT_THROW(TreeParent({0, 4}, 4), InternalError);
}

TEST(Tree, MaximalNodesOfOwnedLeaves) {
  EXPECT_EQ(MaximalNodes({0, 1, 2, 3}, 4), (std::vector<TreeNode>{{0, 4}}));
  EXPECT_EQ(MaximalNodes({1, 2, 3}, 4), (std::vector<TreeNode>{{1, 2}, {2, 4}}));
  EXPECT_EQ(MaximalNodes({}, 4), (std::vector<TreeNode>{}));
  // Contiguous runs of equal length on a power of two of holders: one node each (numerics R4).
  for (int32_t d : {1, 2, 4, 8}) {
    for (int32_t m = 1; m <= 9; ++m) {
      for (int32_t r = 0; r < d; ++r) {
        std::vector<int32_t> owned(m);
        std::iota(owned.begin(), owned.end(), r * m);
        EXPECT_EQ(MaximalNodes(owned, d * m).size(), 1u) << d << " holders of " << m;
      }
    }
  }
}

// The figures of numerics R3; the leaf that has just arrived counts.
TEST(Tree, PeakPartialSums) {
  for (const auto& [m, expected] : {std::pair{8, 4}, {16, 5}, {1, 1}, {2, 2}}) {
    std::vector<int32_t> order = Ascending(m);
    EXPECT_EQ(PeakPartialSums(order, m), expected) << m << " ascending";
    std::reverse(order.begin(), order.end());
    EXPECT_EQ(PeakPartialSums(order, m), expected) << m << " descending";
  }
  std::vector<int32_t> six = Ascending(6);
  const int up = PeakPartialSums(six, 6);
  std::reverse(six.begin(), six.end());
  const int down = PeakPartialSums(six, 6);
  EXPECT_EQ(std::minmax(up, down), (std::pair<const int&, const int&>(3, 4)));

  for (int32_t m = 1; m <= 64; ++m) {
    int log = 0;
    while ((1 << log) < m) ++log;
    EXPECT_LE(PeakPartialSums(Ascending(m), m), log + 1);
  }
}

// Two leaves of every subtree of three can wait unmerged, so the bound is two thirds, not one half.
TEST(Tree, PeakInArbitraryOrder) {
  std::mt19937 rng(7);
  for (int32_t m : {5, 8, 13, 32}) {
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<int32_t> order = Ascending(m);
      std::shuffle(order.begin(), order.end(), rng);
      EXPECT_LE(PeakPartialSums(order, m), (2 * m + 2) / 3 + 1);
    }
  }
}

}  // namespace
}  // namespace penstock
