#include "optim/partial_sums.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/error.h"

namespace penstock::optim {
namespace {

constexpr int64_t kElements = 37;

std::vector<at::Tensor> RandomLeaves(int n, std::mt19937_64& rng) {
  std::normal_distribution<float> normal;
  std::vector<at::Tensor> leaves;
  for (int i = 0; i < n; ++i) {
    at::Tensor t = at::empty({kElements}, at::kFloat);
    for (int64_t k = 0; k < kElements; ++k) t.mutable_data_ptr<float>()[k] = normal(rng);
    leaves.push_back(t);
  }
  return leaves;
}

// The definition (docs/numerics.md R2), one scalar at a time.
float Oracle(const std::vector<at::Tensor>& leaves, int64_t element, int32_t lo, int32_t hi) {
  if (hi - lo == 1) return leaves[lo].const_data_ptr<float>()[element];
  const int32_t mid = TreeNode{lo, hi}.mid();
  return Oracle(leaves, element, lo, mid) + Oracle(leaves, element, mid, hi);
}

bool EqualsOracle(const at::Tensor& sum, const std::vector<at::Tensor>& leaves) {
  for (int64_t k = 0; k < kElements; ++k)
    if (sum.const_data_ptr<float>()[k] != Oracle(leaves, k, 0, static_cast<int32_t>(leaves.size()))) return false;
  return true;
}

// Numerics test 1: whatever rank owns whatever micro-batch, in whatever order they finish.
TEST(PartialSums, RandomOwnershipEqualsTheTree) {
  std::mt19937_64 rng(1);
  for (int round = 0; round < 300; ++round) {
    const int n = 1 + static_cast<int>(rng() % 32);
    const int ranks = 1 + static_cast<int>(rng() % 8);
    const std::vector<at::Tensor> leaves = RandomLeaves(n, rng);
    std::vector<std::vector<int32_t>> owned(ranks);
    for (int j = 0; j < n; ++j) owned[rng() % ranks].push_back(j);
    PartialSums whole(n, PartialSums::Mode::tree, at::kFloat);
    for (std::vector<int32_t>& mine : owned) {
      const std::vector<TreeNode> expected = MaximalNodes(mine, n);
      std::shuffle(mine.begin(), mine.end(), rng);
      PartialSums sums(n, PartialSums::Mode::tree, at::kFloat);
      for (const int32_t j : mine) sums.Add(j, leaves[j].clone());
      EXPECT_EQ(sums.peak_buffers(), PeakPartialSums(mine, n));
      EXPECT_EQ(sums.covered(), static_cast<int32_t>(mine.size()));
      auto taken = sums.Take();
      ASSERT_EQ(taken.size(), expected.size());
      for (size_t i = 0; i < taken.size(); ++i) {
        EXPECT_EQ(taken[i].first, expected[i]);
        whole.AddNode(taken[i].first, std::move(taken[i].second));
      }
      EXPECT_EQ(sums.buffers(), 0);
    }
    ASSERT_TRUE(EqualsOracle(whole.TakeRoot(), leaves)) << n << " micro-batches on " << ranks << " ranks";
  }
}

// Numerics test 8: wrong folds are told apart from the tree.
TEST(PartialSums, LeftFoldAndRankOrderHaveOtherBits) {
  std::mt19937_64 rng(2);
  const std::vector<at::Tensor> leaves = RandomLeaves(16, rng);
  at::Tensor left_fold = leaves[0].clone();
  for (int j = 1; j < 16; ++j) left_fold += leaves[j];
  EXPECT_FALSE(EqualsOracle(left_fold, leaves));
  // D = 4 contiguous runs, each summed by the tree, then added in rank order.
  at::Tensor rank_order;
  for (int rank = 0; rank < 4; ++rank) {
    PartialSums sums(16, PartialSums::Mode::tree, at::kFloat);
    for (int j = 4 * rank; j < 4 * rank + 4; ++j) sums.Add(j, leaves[j].clone());
    at::Tensor mine = sums.Take().at(0).second;
    rank_order = rank == 0 ? mine : rank_order + mine;
  }
  EXPECT_FALSE(EqualsOracle(rank_order, leaves));
}

TEST(PartialSums, PeakOfContiguousOrdersIsLogarithmic) {
  for (const int m : {1, 2, 3, 6, 8, 16, 31}) {
    int bound = 1;
    for (int size = 1; size < m; size *= 2) ++bound;
    for (const bool descending : {false, true}) {
      PartialSums sums(m, PartialSums::Mode::tree, at::kFloat);
      for (int i = 0; i < m; ++i) sums.Add(descending ? m - 1 - i : i, at::ones({3}));
      EXPECT_LE(sums.peak_buffers(), bound);
      EXPECT_EQ(sums.TakeRoot().const_data_ptr<float>()[0], static_cast<float>(m));
    }
  }
}

// An absent leaf is not a zero: -0.0 stays -0.0.
TEST(PartialSums, AbsentLeavesAreSkipped) {
  PartialSums sums(4, PartialSums::Mode::tree, at::kFloat);
  sums.AddAbsent(0);
  sums.Add(1, at::full({2}, -0.0f));
  sums.AddAbsent(3);
  sums.AddAbsent(2);
  EXPECT_EQ(sums.peak_buffers(), 1);
  const at::Tensor root = sums.TakeRoot();
  EXPECT_TRUE(std::signbit(root.const_data_ptr<float>()[0]));
  for (int j = 0; j < 4; ++j) sums.AddAbsent(j);
  EXPECT_FALSE(sums.TakeRoot().defined());
}

// autograd hands one tensor to two inputs (x + y), or a stride-0 expansion (sum): neither may be written.
TEST(PartialSums, SharedAndExpandedGradientsAreNotWritten) {
  const at::Tensor shared = at::full({5}, 2.0f);
  PartialSums a(2, PartialSums::Mode::tree, at::kFloat), b(2, PartialSums::Mode::tree, at::kFloat);
  a.Add(0, shared);
  b.Add(0, shared.view({5}));
  a.Add(1, at::ones({1}).expand({5}));
  b.Add(1, at::full({5}, 4.0f));
  EXPECT_EQ(a.TakeRoot().const_data_ptr<float>()[4], 3.0f);
  EXPECT_EQ(b.TakeRoot().const_data_ptr<float>()[0], 6.0f);
  EXPECT_EQ(shared.const_data_ptr<float>()[0], 2.0f);
}

TEST(PartialSums, BorrowedMemoryIsNotWritten) {
  std::vector<float> message(8, 1.0f);
  PartialSums sums(2, PartialSums::Mode::tree, at::kFloat);
  sums.Add(0, at::from_blob(message.data(), {8}, at::kFloat), PartialSums::Memory::borrowed);
  sums.Add(1, at::full({8}, 5.0f));
  EXPECT_EQ(sums.TakeRoot().const_data_ptr<float>()[7], 6.0f);
  EXPECT_EQ(message[7], 1.0f);
}

TEST(PartialSums, OwnedLeftOperandIsReused) {
  PartialSums sums(2, PartialSums::Mode::tree, at::kFloat);
  at::Tensor left = at::ones({64});
  const void* memory = left.const_data_ptr();
  sums.Add(0, std::move(left));
  sums.Add(1, at::ones({64}));
  EXPECT_EQ(sums.TakeRoot().const_data_ptr(), memory);
}

TEST(PartialSums, LeavesAreWidenedAtOnce) {
  PartialSums sums(2, PartialSums::Mode::tree, at::kFloat);
  sums.Add(0, at::full({3}, 256.0, at::kBFloat16));
  sums.Add(1, at::full({3}, 1.0, at::kBFloat16));  // 257 is not a bf16
  EXPECT_EQ(sums.TakeRoot().const_data_ptr<float>()[0], 257.0f);
  PartialSums wide(1, PartialSums::Mode::tree, at::kDouble);
  wide.Add(0, at::ones({1}));
  EXPECT_EQ(wide.TakeRoot().scalar_type(), at::kDouble);
}

TEST(PartialSums, RunningModeKeepsOneBuffer) {
  PartialSums sums(8, PartialSums::Mode::running, at::kFloat);
  for (const int j : {5, 2, 3}) sums.Add(j, at::full({2}, static_cast<float>(j)));
  EXPECT_EQ(sums.buffers(), 1);
  EXPECT_EQ(sums.peak_buffers(), 2);
  EXPECT_EQ(sums.covered(), 3);
  const auto taken = sums.Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].first, (TreeNode{2, 6}));
  EXPECT_EQ(taken[0].second.const_data_ptr<float>()[1], 10.0f);
  EXPECT_EQ(sums.Take().size(), 0u);
}

TEST(PartialSums, ZeroElementsAndScalars) {
  PartialSums sums(2, PartialSums::Mode::tree, at::kFloat);
  sums.Add(0, at::empty({0, 3}, at::kFloat));
  sums.Add(1, at::empty({0, 3}, at::kFloat));
  EXPECT_EQ(sums.TakeRoot().sizes(), (at::IntArrayRef{0, 3}));
  sums.Add(1, at::full({}, 1.0f));
  sums.Add(0, at::full({}, 2.0f));
  EXPECT_EQ(sums.TakeRoot().item<float>(), 3.0f);
}

TEST(PartialSums, FaultsAreErrors) {
  PartialSums sums(4, PartialSums::Mode::tree, at::kFloat);
  sums.Add(1, at::ones({2}));
  EXPECT_THROW(sums.Add(1, at::ones({2})), InternalError);
  EXPECT_THROW(sums.Add(4, at::ones({2})), InternalError);
  EXPECT_THROW(sums.TakeRoot(), InternalError);
  EXPECT_THROW(PartialSums(4, PartialSums::Mode::tree, at::kFloat).AddNode({1, 3}, at::ones({2})), InternalError);
  EXPECT_THROW(sums.Add(0, at::ones({3})), InternalError);
}

}  // namespace
}  // namespace penstock::optim
