// Byte and message counters equal the table of comm/traffic.h and R4 of docs/numerics.md.
#include <ATen/ATen.h>

#include <mutex>

#include "backends.h"

namespace penstock::comm {
namespace {

class TrafficTest : public BackendTest {};
PENSTOCK_FOR_ALL_BACKENDS(TrafficTest);

TEST_P(TrafficTest, EvenShards) {
  for (const int ranks : kRankCounts) {
    Run(ranks, [ranks](Communicator& comm) {
      const int64_t n = 840 * 8, d = ranks;  // divisible by all counts
      const int64_t bytes = n * 4;
      const auto ring = static_cast<uint64_t>(2 * (d - 1) * bytes / d), half = ring / 2;
      const auto others = static_cast<uint64_t>(d - 1);
      const auto count = [&](CommKind kind, uint64_t messages, uint64_t expected) {
        EXPECT_EQ(comm.traffic().of(kind).bytes, expected) << ToString(kind) << " on " << d;
        EXPECT_EQ(comm.traffic().of(kind).messages, expected > 0 ? messages : 0) << ToString(kind) << " on " << d;
        EXPECT_EQ(comm.traffic().Total(), comm.traffic().of(kind));
        comm.ResetTraffic();
      };
      const auto bounds = ShardBounds(n, ranks);
      at::Tensor data = at::ones({n}), shard = at::empty({n / d});

      comm.AllReduceSum(comm.world(), {}, data)->Wait();
      count(CommKind::all_reduce, 2 * others, ring);
      comm.AllReduceTree(comm.world(), {}, {{TreeNode{comm.rank(), comm.rank() + 1}, data}}, ranks, data)->Wait();
      count(CommKind::all_reduce_tree, 2 * others, ring);  // one node per holder
      comm.ReduceScatterSum(comm.world(), {}, data, bounds, shard)->Wait();
      count(CommKind::reduce_scatter, others, half);
      comm.ReduceScatterTree(comm.world(), {}, {{TreeNode{comm.rank(), comm.rank() + 1}, data}}, ranks, bounds, shard)
          ->Wait();
      count(CommKind::reduce_scatter_tree, others, half);
      comm.AllGather(comm.world(), {}, shard, bounds, data)->Wait();
      count(CommKind::all_gather, others, half);
      comm.AllGatherV(comm.world(), {}, at::ones({comm.rank() + 1}, at::kDouble))->Wait();
      count(CommKind::all_gather_v, others, others * (comm.rank() + 1) * 8);
      std::vector<at::Tensor> parts;
      for (int i = 0; i < ranks; ++i) parts.push_back(at::ones({i + 1}));
      comm.AllToAllV(comm.world(), {}, parts)->Wait();
      count(CommKind::all_to_all_v, others, static_cast<uint64_t>(4 * (d * (d + 1) / 2 - comm.rank() - 1)));
      comm.Broadcast(comm.world(), {}, 0, data)->Wait();
      count(CommKind::broadcast, others, comm.rank() == 0 ? others * bytes : 0);
      if (comm.rank() == 0 && ranks > 1) comm.Send(1, {}, {data, shard});
      if (comm.rank() == 1) comm.Recv(0, {})->Wait();
      count(CommKind::send, 1, comm.rank() == 0 && ranks > 1 ? bytes + bytes / d : 0);
      comm.Barrier(comm.world(), {})->Wait();
      EXPECT_EQ(comm.traffic().Total().bytes, 0u);
      EXPECT_EQ(comm.traffic().of(CommKind::barrier).messages, ranks == 1   ? 0u
                                                               : ranks <= 2 ? 1u
                                                               : ranks <= 4 ? 2u
                                                                            : 3u);
      comm.ResetTraffic();
    });
  }
}

// R4: contiguous runs of M micro-batches per rank. D a power of two: one node each, the ring's bytes. D = 3: the
// largest number of nodes a rank brings is 2, 3, 4, 5 at M = 2, 4, 8, 16, and bytes follow the number of nodes.
TEST_P(TrafficTest, TreeBytesFollowTheNodes) {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const int m : {2, 4, 8, 16}) {
      std::mutex mutex;
      size_t most = 0;
      Run(ranks, [&](Communicator& comm) {
        std::vector<int32_t> mine;
        for (int i = 0; i < m; ++i) mine.push_back(comm.rank() * m + i);
        Communicator::Contributions nodes;
        constexpr int64_t kElements = 24;
        for (const TreeNode node : MaximalNodes(mine, ranks * m))
          nodes.emplace_back(node, at::full({kElements}, node.size(), at::kFloat));
        const size_t brought = nodes.size();
        at::Tensor out = at::empty({kElements});
        comm.AllReduceTree(comm.world(), {}, std::move(nodes), ranks * m, out)->Wait();
        EXPECT_TRUE(at::equal(out, at::full({kElements}, ranks * m, at::kFloat)));
        const uint64_t slice = kElements * 4 / ranks, others = ranks - 1;
        EXPECT_EQ(comm.traffic().of(CommKind::all_reduce_tree).bytes, brought * others * slice + others * slice);
        std::lock_guard lock(mutex);
        most = std::max(most, brought);
      });
      if (ranks == 3) {
        EXPECT_EQ(most, m == 2 ? 2u : m == 4 ? 3u : m == 8 ? 4u : 5u) << m;
      } else {
        EXPECT_EQ(most, 1u) << ranks << " ranks";
      }
    }
  }
}

// Uneven shards: nothing is lost, the sum over ranks is what the owners receive.
TEST_P(TrafficTest, UnevenShards) {
  std::atomic<uint64_t> total{0};
  Run(3, [&](Communicator& comm) {
    at::Tensor data = at::ones({10});
    comm.AllReduceSum(comm.world(), {}, data)->Wait();
    total += comm.traffic().Total().bytes;
  });
  EXPECT_EQ(total, 2u * 2u * 10u * 4u);
}

}  // namespace
}  // namespace penstock::comm
