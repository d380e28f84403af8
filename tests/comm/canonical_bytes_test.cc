// The thread communicator's counters of the canonical-tree collectives against the entries of cost/collectives.h: every
// rank to the byte, also with uneven shards and uneven runs of micro-batches, and the table's figures when even.
#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>

#include "backends.h"
#include "base/tree.h"
#include "cost/collectives.h"

namespace penstock::comm {
namespace {

class CanonicalBytesTest : public BackendTest {};
PENSTOCK_FOR_ALL_BACKENDS(CanonicalBytesTest);

TEST_P(CanonicalBytesTest, CountersAreTheFormulas) {
  for (const int ranks : {2, 3, 4, 7})
    for (const int leaves : {ranks, 2 * ranks, 2 * ranks + 1, 4 * ranks})
      for (const int64_t elements : {int64_t{840}, int64_t{61}}) {  // divisible by all counts; by none of them
        SCOPED_TRACE(testing::Message() << ranks << " ranks, " << leaves << " leaves, " << elements << " elements");
        std::mutex mutex;
        cost::CollectiveCount reduced, scattered;  // what the busiest rank and all ranks sent
        const auto record = [&](cost::CollectiveCount& count, const Traffic& traffic) {
          std::lock_guard lock(mutex);
          count.messages = std::max<int64_t>(count.messages, static_cast<int64_t>(traffic.messages));
          count.bytes = std::max(count.bytes, static_cast<double>(traffic.bytes));
          count.total_messages += static_cast<int64_t>(traffic.messages);
          count.total_bytes += static_cast<double>(traffic.bytes);
        };
        Run(ranks, [&](Communicator& comm) {
          const int r = comm.rank(), runs = leaves / ranks, longer = leaves % ranks;
          const int first = r * runs + std::min(r, longer);
          std::vector<int32_t> mine;
          for (int i = 0; i < runs + (r < longer ? 1 : 0); ++i) mine.push_back(first + i);
          const auto nodes = MaximalNodes(mine, leaves);
          const auto contributions = [&] {
            Communicator::Contributions c;
            for (const TreeNode node : nodes) c.emplace_back(node, at::ones({elements}));
            return c;
          };
          const auto bounds = ShardBounds(elements, ranks);
          const int64_t bytes = elements * 4, own = (bounds[r + 1] - bounds[r]) * 4;
          const auto brought = static_cast<int64_t>(nodes.size());

          at::Tensor out = at::empty({elements}), shard = at::empty({own / 4});
          comm.AllReduceTree(comm.world(), {}, contributions(), leaves, out)->Wait();
          const Traffic all = comm.traffic().of(CommKind::all_reduce_tree);
          EXPECT_EQ(static_cast<int64_t>(all.bytes), cost::CanonicalAllReduceBytes(brought, bytes, own, ranks));
          comm.ReduceScatterTree(comm.world(), {}, contributions(), leaves, bounds, shard)->Wait();
          const Traffic half = comm.traffic().of(CommKind::reduce_scatter_tree);
          EXPECT_EQ(static_cast<int64_t>(half.bytes), cost::CanonicalReduceScatterBytes(brought, bytes, own));
          record(reduced, all);
          record(scattered, half);
        });
        if (elements % ranks != 0) continue;
        const cost::CollectiveCase even{
            .ranks = ranks, .bytes = static_cast<double>(elements) * 4, .micro_batches = leaves};
        const auto compare = [&](const char* name, const cost::CollectiveCount& counted) {
          const cost::CollectiveCount expected = cost::CountCollective(name, even);
          EXPECT_EQ(counted.messages, expected.messages) << name;
          EXPECT_EQ(counted.bytes, expected.bytes) << name;
          EXPECT_EQ(counted.total_messages, expected.total_messages) << name;
          EXPECT_EQ(counted.total_bytes, expected.total_bytes) << name;
        };
        compare("all_reduce.canonical_tree", reduced);
        compare("reduce_scatter.canonical_tree", scattered);
      }
}

}  // namespace
}  // namespace penstock::comm
