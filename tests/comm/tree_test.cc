// The canonical tree over ranks (docs/numerics.md R2-R4, tests 1 and 8): whatever rank owns which micro-batches, the
// result has the bits of the recursive tree. And the check can fail: other orders do not have them.
#include <ATen/ATen.h>

#include <random>

#include "backends.h"
#include "comm/reduce_plan.h"

namespace penstock::comm {
namespace {

using Leaves = std::vector<at::Tensor>;  // undefined: absent

at::Tensor RandomLeaf(std::mt19937_64& random, int64_t length, at::ScalarType type) {
  at::Tensor leaf = at::empty({length}, at::kDouble);
  std::normal_distribution<double> mantissa;
  std::uniform_int_distribution<int> exponent(-12, 12);
  auto* x = leaf.mutable_data_ptr<double>();
  for (int64_t i = 0; i < length; ++i) x[i] = std::ldexp(mantissa(random), exponent(random));
  return leaf.to(type);
}

// Two tensors of one type: the same bits.
bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.numel() * a.element_size()) == 0);
}

// The definition, word for word.
at::Tensor Reference(const Leaves& leaves, int32_t lo, int32_t hi) {
  if (hi - lo == 1) return leaves[lo];
  const int32_t mid = lo + (hi - lo + 1) / 2;
  const at::Tensor a = Reference(leaves, lo, mid), b = Reference(leaves, mid, hi);
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

// What rank r brings: its maximal nodes, each with the tree's sum of its leaves.
Communicator::Contributions Bring(const Leaves& leaves, const std::vector<int>& owner, int rank) {
  std::vector<int32_t> mine;
  for (size_t i = 0; i < owner.size(); ++i) {
    if (owner[i] == rank) mine.push_back(static_cast<int32_t>(i));
  }
  Communicator::Contributions nodes;
  for (const TreeNode node : MaximalNodes(mine, static_cast<int32_t>(leaves.size()))) {
    at::Tensor sum = Reference(leaves, node.lo, node.hi);
    if (sum.defined()) nodes.emplace_back(node, sum.clone());
  }
  return nodes;
}

struct Case {
  Leaves leaves;
  std::vector<int> owner;
};

Case RandomCase(std::mt19937_64& random, int ranks, at::ScalarType type, double absent) {
  Case c;
  const int n = 1 + static_cast<int>(random() % 32);
  const int64_t length = 1 + static_cast<int64_t>(random() % 40);
  const int holders = 1 + static_cast<int>(random() % ranks);
  for (int i = 0; i < n; ++i) {
    const bool missing = std::uniform_real_distribution<>()(random) < absent;
    c.leaves.push_back(missing ? at::Tensor() : RandomLeaf(random, length, type));
    c.owner.push_back(static_cast<int>(random() % holders));
  }
  return c;
}

int64_t LengthOf(const Case& c) {
  for (const at::Tensor& leaf : c.leaves) {
    if (leaf.defined()) return leaf.numel();
  }
  return 5;
}

// Test 1 of numerics.md, the plan alone: fast enough for thousands of ownerships.
TEST(TreePlanTest, AnyOwnershipHasTheBitsOfTheTree) {
  std::mt19937_64 random(1);
  int compared = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto type = i % 2 == 0 ? at::kFloat : at::kDouble;
    const Case c = RandomCase(random, 8, type, i % 4 < 2 ? 0.0 : 0.3);
    const auto n = static_cast<int32_t>(c.leaves.size());
    std::vector<TreeNode> nodes;
    std::vector<const void*> sources;
    Communicator::Contributions all;
    for (int r = 0; r < 8; ++r) {
      for (auto& one : Bring(c.leaves, c.owner, r)) all.push_back(std::move(one));
    }
    for (const auto& [node, sum] : all) {
      nodes.push_back(node);
      sources.push_back(sum.const_data_ptr());
    }
    at::Tensor out = at::full({LengthOf(c)}, 42, type);
    RunReduce(TreePlan(nodes, n), type, sources, {{out.mutable_data_ptr(), 0}}, 0, out.numel());
    const at::Tensor expected = Reference(c.leaves, 0, n);
    ASSERT_TRUE(SameBits(out, expected.defined() ? expected : at::zeros_like(out))) << "case " << i;
    compared += expected.defined();
  }
  EXPECT_GT(compared, 3900);
}

TEST(TreePlanTest, RefusesWhatIsNoTree) {
  EXPECT_THROW(TreePlan({{0, 2}, {1, 2}}, 4), InternalError);
  EXPECT_THROW(TreePlan({{1, 3}}, 4), InternalError);
  EXPECT_THROW(TreePlan({{0, 1}, {0, 1}}, 4), InternalError);
  EXPECT_THROW(TreePlan({{4, 5}}, 4), InternalError);
  EXPECT_TRUE(TreePlan({}, 4).empty);
}

// Scratch stays small: at most one slot per level.
TEST(TreePlanTest, ScratchIsLogarithmic) {
  std::vector<TreeNode> nodes;
  for (int32_t i = 0; i < 32; ++i) nodes.push_back({i, i + 1});
  EXPECT_LE(TreePlan(nodes, 32).num_slots, 5);
  EXPECT_EQ(TreePlan(nodes, 32).additions.size(), 31u);
  EXPECT_EQ(FoldPlan(5).num_slots, 1);
}

class Tree : public BackendTest {};
PENSTOCK_FOR_ALL_BACKENDS(Tree);

// The same through the communicator: all-reduce, and reduce-scatter then all-gather.
TEST_P(Tree, AnyOwnershipOnEveryRankCount) {
  for (const int ranks : kRankCounts) {
    Run(ranks, [ranks](Communicator& comm) {
      std::mt19937_64 random(ranks);  // all ranks draw the same cases
      for (int i = 0; i < 40; ++i) {
        const auto type = i % 2 == 0 ? at::kFloat : at::kDouble;
        const Case c = RandomCase(random, ranks, type, i % 4 < 2 ? 0.0 : 0.3);
        const auto n = static_cast<int32_t>(c.leaves.size());
        at::Tensor expected = Reference(c.leaves, 0, n);
        at::Tensor out = at::full({LengthOf(c)}, 42, type);
        if (!expected.defined()) expected = at::zeros_like(out);
        comm.AllReduceTree(comm.world(), {1, 0}, Bring(c.leaves, c.owner, comm.rank()), n, out)->Wait();
        ASSERT_TRUE(SameBits(out, expected)) << ranks << " ranks, case " << i;

        const auto bounds = ShardBounds(out.numel(), ranks, 4);
        at::Tensor shard = at::empty({bounds[comm.rank() + 1] - bounds[comm.rank()]}, out.options());
        comm.ReduceScatterTree(comm.world(), {1, 1}, Bring(c.leaves, c.owner, comm.rank()), n, bounds, shard)->Wait();
        out.zero_();
        comm.AllGather(comm.world(), {1, 2}, shard, bounds, out)->Wait();
        ASSERT_TRUE(SameBits(out, expected)) << ranks << " ranks, sharded, case " << i;
      }
    });
  }
}

// Long enough for many shards and blocks; the destination is one of the contributions.
TEST_P(Tree, LargeAndInPlace) {
  Run(3, [](Communicator& comm) {
    std::mt19937_64 random(5);
    Leaves leaves;
    for (int i = 0; i < 7; ++i) leaves.push_back(RandomLeaf(random, 50'001, at::kFloat));
    auto nodes = Bring(leaves, {0, 1, 2, 0, 1, 2, 0}, comm.rank());
    at::Tensor out = nodes[0].second;
    comm.AllReduceTree(comm.world(), {2, 0}, nodes, 7, out)->Wait();
    EXPECT_TRUE(SameBits(out, Reference(leaves, 0, 7)));
  });
}

TEST_P(Tree, MinusZeroAndNanSurvive) {
  Run(2, [](Communicator& comm) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Communicator::Contributions nodes;
    if (comm.rank() == 1) nodes = {{TreeNode{1, 2}, at::tensor({-0.0f, nan, 1.0f})}};
    at::Tensor out = at::empty({3});
    comm.AllReduceTree(comm.world(), {3, 0}, nodes, 3, out)->Wait();
    EXPECT_TRUE(std::signbit(out[0].item<float>()));  // absent leaves are skipped, not added as +0
    EXPECT_TRUE(std::isnan(out[1].item<float>()));
  });
}

TEST_P(Tree, SameLeafTwiceIsAnErrorOnAll) {
  std::atomic<int> refused{0};
  EXPECT_THROW(Run(2,
                   [&](Communicator& comm) {
                     at::Tensor out = at::empty({3});
                     try {
                       comm.AllReduceTree(comm.world(), {3, 1}, {{TreeNode{0, 2}, at::ones({3})}}, 4, out)->Wait();
                     } catch (const OrderMismatch&) {
                       ++refused;
                       throw;
                     }
                   }),
               OrderMismatch);
  EXPECT_EQ(refused, 2);
}

// ---- test 8 of numerics.md: mutations. Orders that are not the tree must be seen. ----

int DifferingElements(const at::Tensor& a, const at::Tensor& b) {
  int differing = 0;
  for (int64_t i = 0; i < a.numel(); ++i) differing += !SameBits(a.slice(0, i, i + 1), b.slice(0, i, i + 1));
  return differing;
}

Leaves ManyLeaves(int n) {
  std::mt19937_64 random(11);
  Leaves leaves;
  for (int i = 0; i < n; ++i) leaves.push_back(RandomLeaf(random, 200, at::kFloat));
  return leaves;
}

TEST(TreeMutation, LeftFoldOverMicroBatchesDiffers) {
  const Leaves leaves = ManyLeaves(8);
  at::Tensor fold = leaves[0].clone();
  for (int i = 1; i < 8; ++i) fold.add_(leaves[i]);
  EXPECT_GT(DifferingElements(fold, Reference(leaves, 0, 8)), 50);
}

TEST(TreeMutation, RankOrderDiffersForFourRanks) {
  const Leaves leaves = ManyLeaves(8);
  std::vector<at::Tensor> partial;
  std::vector<const void*> sources;
  for (int r = 0; r < 4; ++r) partial.push_back(Reference(leaves, 2 * r, 2 * r + 2));
  for (const at::Tensor& p : partial) sources.push_back(p.const_data_ptr());
  at::Tensor out = at::empty({200});
  RunReduce(FoldPlan(4), at::kFloat, sources, {{out.mutable_data_ptr(), 0}}, 0, 200);
  EXPECT_GT(DifferingElements(out, Reference(leaves, 0, 8)), 20);
}

// A ring adds shard i starting at rank i + 1: each shard in another rotation.
TEST(TreeMutation, RingOrderDiffers) {
  const Leaves leaves = ManyLeaves(8);
  std::vector<at::Tensor> partial;
  for (int r = 0; r < 4; ++r) partial.push_back(Reference(leaves, 2 * r, 2 * r + 2));
  at::Tensor out = at::empty({200});
  for (int shard = 0; shard < 4; ++shard) {
    const auto part = [&](int r) { return partial[r % 4].slice(0, shard * 50, shard * 50 + 50); };
    out.slice(0, shard * 50, shard * 50 + 50)
        .copy_(((part(shard + 1) + part(shard + 2)) + part(shard + 3)) + part(shard));
  }
  EXPECT_GT(DifferingElements(out, Reference(leaves, 0, 8)), 20);
}

// With two ranks every order is the tree: additions commute. (So tests with two ranks prove nothing about order.)
TEST(TreeMutation, TwoRanksCannotTell) {
  const Leaves leaves = ManyLeaves(2);
  EXPECT_EQ(DifferingElements(leaves[1] + leaves[0], Reference(leaves, 0, 2)), 0);
}

}  // namespace
}  // namespace penstock::comm
