// Every collective on every rank count with values known in closed form.
#include <ATen/ATen.h>

#include "backends.h"

namespace penstock::comm {
namespace {

const std::vector<int64_t> kLengths = {0, 1, 3, 1023, 40'001};

class Collectives : public BackendTest {};
PENSTOCK_FOR_ALL_BACKENDS(Collectives);

at::TensorOptions Type(at::ScalarType type) { return at::TensorOptions().dtype(type); }

TEST_P(Collectives, AllReduceSum) {
  for (const int n : kRankCounts) {
    Run(n, [n](Communicator& comm) {
      for (const auto type : {at::kFloat, at::kDouble, at::kInt, at::kLong}) {
        for (const int64_t length : kLengths) {
          const at::Tensor ramp = at::arange(length, Type(type));
          at::Tensor data = ramp + comm.rank();
          comm.AllReduceSum(comm.world(), {1, 0}, data)->Wait();
          EXPECT_TRUE(at::equal(data, ramp * n + n * (n - 1) / 2)) << n << " ranks, " << length;
        }
      }
    });
  }
}

// Left to right in group order, to the bit.
TEST_P(Collectives, AllReduceSumAddsInGroupOrder) {
  const std::vector<float> values = {1e8f, 1.5f, -1e8f, 0.25f};
  Run(4, [&](Communicator& comm) {
    at::Tensor data = at::full({33}, values[comm.rank()], at::kFloat);
    comm.AllReduceSum(comm.world(), {1, 0}, data)->Wait();
    EXPECT_TRUE(at::equal(data, at::full({33}, ((values[0] + values[1]) + values[2]) + values[3], at::kFloat)));
  });
}

TEST_P(Collectives, ReduceScatterAndAllGather) {
  for (const int n : kRankCounts) {
    Run(n, [n](Communicator& comm) {
      for (const auto type : {at::kFloat, at::kDouble}) {
        for (const int64_t length : kLengths) {
          for (const int64_t align : {1, 64}) {
            const auto bounds = ShardBounds(length, n, align);
            const int64_t first = bounds[comm.rank()], last = bounds[comm.rank() + 1];
            const at::Tensor ramp = at::arange(length, Type(type));
            at::Tensor in = ramp * (comm.rank() + 1);
            at::Tensor shard = at::empty({last - first}, Type(type));
            comm.ReduceScatterSum(comm.world(), {2, 0}, in, bounds, shard)->Wait();
            EXPECT_TRUE(at::equal(shard, ramp.slice(0, first, last) * (n * (n + 1) / 2)));
            EXPECT_TRUE(at::equal(in, ramp * (comm.rank() + 1)));
            // Both in place: the shard is part of the whole.
            comm.ReduceScatterSum(comm.world(), {2, 1}, in, bounds, in.slice(0, first, last))->Wait();
            comm.AllGather(comm.world(), {2, 2}, in.slice(0, first, last), bounds, in)->Wait();
            EXPECT_TRUE(at::equal(in, ramp * (n * (n + 1) / 2)));
          }
        }
      }
    });
  }
}

TEST_P(Collectives, AllGatherOfBytes) {
  Run(3, [](Communicator& comm) {
    const std::vector<int64_t> bounds = {0, 2, 2, 7};
    at::Tensor out = at::zeros({7}, at::kByte);
    const int64_t mine = bounds[comm.rank() + 1] - bounds[comm.rank()];
    comm.AllGather(comm.world(), {2, 3}, at::full({mine}, comm.rank() + 1, at::kByte), bounds, out)->Wait();
    EXPECT_TRUE(at::equal(out, at::tensor(std::vector<int64_t>{1, 1, 3, 3, 3, 3, 3}).to(at::kByte)));
  });
}

TEST_P(Collectives, AllGatherV) {
  for (const int n : kRankCounts) {
    Run(n, [n](Communicator& comm) {
      for (const auto type : {at::kDouble, at::kByte}) {
        // Lengths differ, rank 0 has nothing.
        const auto got =
            comm.AllGatherV(comm.world(), {3, 0}, at::full({comm.rank() * 3}, comm.rank(), type))->TakeTensors();
        ASSERT_EQ(got.size(), static_cast<size_t>(n));
        for (int r = 0; r < n; ++r) EXPECT_TRUE(at::equal(got[r], at::full({r * 3}, r, type)));
      }
    });
  }
}

TEST_P(Collectives, AllToAllV) {
  for (const int n : kRankCounts) {
    Run(n, [n](Communicator& comm) {
      std::vector<at::Tensor> parts;
      for (int to = 0; to < n; ++to)
        parts.push_back(at::full({(comm.rank() + to) % 3}, comm.rank() * 100 + to, at::kLong));
      const auto got = comm.AllToAllV(comm.world(), {4, 0}, parts)->TakeTensors();
      ASSERT_EQ(got.size(), static_cast<size_t>(n));
      for (int from = 0; from < n; ++from) {
        EXPECT_TRUE(at::equal(got[from], at::full({(comm.rank() + from) % 3}, from * 100 + comm.rank(), at::kLong)));
      }
    });
  }
}

TEST_P(Collectives, Broadcast) {
  for (const int n : kRankCounts) {
    Run(n, [n](Communicator& comm) {
      for (int root = 0; root < n; ++root) {
        for (const int64_t length : kLengths) {
          at::Tensor data = at::full({length}, comm.rank() + 1, at::kHalf);
          comm.Broadcast(comm.world(), {5, 0}, root, data)->Wait();
          EXPECT_TRUE(at::equal(data, at::full({length}, root + 1, at::kHalf)));
        }
      }
    });
  }
}

TEST_P(Collectives, BarrierHoldsEverybody) {
  for (const int n : kRankCounts) {
    std::atomic<int> arrived{0};
    Run(n, [&](Communicator& comm) {
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        comm.Barrier(comm.world(), {6, static_cast<uint64_t>(round)})->Wait();
        EXPECT_GE(arrived, round * n);
      }
    });
  }
}

// Posted one after the other without waiting, on one buffer: in-order per group.
TEST_P(Collectives, QueueOfOneGroupRunsInOrder) {
  for (const int n : {2, 4}) {
    Run(n, [n](Communicator& comm) {
      at::Tensor data = at::ones({20'000}, at::kDouble);
      std::vector<WorkPtr> works;
      double expected = 1;
      for (int i = 0; i < 8; ++i, expected *= n)
        works.push_back(comm.AllReduceSum(comm.world(), {7, static_cast<uint64_t>(i)}, data));
      works.push_back(comm.Barrier(comm.world(), {7, 100}));
      // Rank 0 waits for the last one only, the others for all.
      for (size_t i = comm.rank() == 0 ? works.size() - 1 : 0; i < works.size(); ++i) works[i]->Wait();
      for (const WorkPtr& w : works) EXPECT_TRUE(w->Done());
      EXPECT_TRUE(at::equal(data, at::full({20'000}, expected, at::kDouble)));
    });
  }
}

TEST_P(Collectives, SubGroupsDoNotWaitForEachOther) {
  Run(4, [](Communicator& comm) {
    // Mesh 2 x 2; created in different orders on different ranks (case C4).
    const int row = comm.rank() / 2, column = comm.rank() % 2;
    Group rows, columns;
    if (comm.rank() % 2 == 0) rows = comm.CreateGroup({2 * row, 2 * row + 1}, "rows");
    columns = comm.CreateGroup({column, column + 2}, "columns");
    if (comm.rank() % 2 == 1) rows = comm.CreateGroup({2 * row, 2 * row + 1}, "rows");
    EXPECT_EQ(rows.rank(), column);
    EXPECT_EQ(columns.rank(), row);
    at::Tensor a = at::full({5}, comm.rank(), at::kFloat), b = at::full({5}, comm.rank(), at::kFloat);
    // Opposite orders of two groups are fine.
    WorkPtr first, second;
    if (comm.rank() < 2) first = comm.AllReduceSum(rows, {8, 0}, a);
    second = comm.AllReduceSum(columns, {8, 1}, b);
    if (comm.rank() >= 2) first = comm.AllReduceSum(rows, {8, 0}, a);
    if (comm.rank() < 2) first->Wait();
    second->Wait();
    first->Wait();
    EXPECT_TRUE(at::equal(a, at::full({5}, 4 * row + 1, at::kFloat)));
    EXPECT_TRUE(at::equal(b, at::full({5}, 2 * column + 2, at::kFloat)));
  });
}

// Two groups over the same ranks with different names have queues of their own.
TEST_P(Collectives, NamedGroupsAreApart) {
  Run(2, [](Communicator& comm) {
    const Group x = comm.CreateGroup({0, 1}, "x"), y = comm.CreateGroup({0, 1}, "y");
    at::Tensor a = at::ones({2}), b = at::ones({2});
    const bool flip = comm.rank() == 1;
    WorkPtr first = comm.AllReduceSum(flip ? y : x, {9, flip ? 1u : 0u}, flip ? b : a);
    WorkPtr second = comm.AllReduceSum(flip ? x : y, {9, flip ? 0u : 1u}, flip ? a : b);
    first->Wait();
    second->Wait();
    EXPECT_TRUE(at::equal(a, at::full({2}, 2.0f)));
    EXPECT_TRUE(at::equal(b, at::full({2}, 2.0f)));
  });
}

// A rank that only polls makes progress for all.
TEST_P(Collectives, PollFinishesWhatIsPosted) {
  Run(3, [](Communicator& comm) {
    at::Tensor data = at::ones({100'000});
    WorkPtr work = comm.AllReduceSum(comm.world(), {10, 0}, data);
    while (!work->Done()) {
      if (!comm.Poll()) std::this_thread::yield();
    }
    EXPECT_TRUE(at::equal(data, at::full({100'000}, 3.0f)));
    EXPECT_FALSE(comm.Poll());
  });
}

}  // namespace
}  // namespace penstock::comm
