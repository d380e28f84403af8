// What is particular to ranks that meet over a transport: transfers in many pieces, peers that fall silent, several
// failures at once. That they are a Communicator like the others, the contract tests say (backends.h).
#include <ATen/ATen.h>

#include <chrono>
#include <cstring>
#include <random>

#include "backends.h"

namespace penstock::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

void RunRemote(int n, const Body& body) { RunLocalRemoteRanks(std::make_shared<LocalHub>(n), {}, body); }

at::Tensor Noise(uint64_t seed, int64_t n) {
  std::mt19937_64 random(seed);
  at::Tensor t = at::empty({n});
  auto* x = t.mutable_data_ptr<float>();
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(static_cast<int64_t>(random()) >> 20) * 1e-6f;
  return t;
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == b.numel() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.numel() * 4) == 0;
}

// More pieces per shard than are received ahead, shards of unequal length, sums over their own sources.
TEST(Remote, ReductionsInManyPieces) {
  constexpr int64_t kElements = 7'000'003;  // 27 MiB
  RunRemote(3, [](Communicator& comm) {
    const int r = comm.rank();
    std::vector<at::Tensor> leaves;
    for (uint64_t i = 0; i < 6; ++i) leaves.push_back(Noise(i, kElements));
    const at::Tensor expected = ((leaves[0] + leaves[1]) + leaves[2]) + ((leaves[3] + leaves[4]) + leaves[5]);

    // Rank 1 brings two nodes, rank 2 none; the result replaces one of the contributions.
    Communicator::Contributions nodes;
    if (r == 0) nodes.push_back({{0, 3}, (leaves[0] + leaves[1]) + leaves[2]});
    if (r == 1) nodes = {{{5, 6}, leaves[5].clone()}, {{3, 5}, leaves[3] + leaves[4]}};
    at::Tensor out = r == 2 ? at::empty({kElements}) : nodes[0].second;
    comm.AllReduceTree(comm.world(), {1, 0}, nodes, 6, out)->Wait();
    EXPECT_TRUE(SameBits(out, expected));

    const std::vector<int64_t> bounds = {0, 5'500'000, 5'500'000, kElements};
    at::Tensor data = leaves[r].clone();
    at::Tensor shard = data.slice(0, bounds[r], bounds[r + 1]);
    comm.ReduceScatterSum(comm.world(), {1, 1}, data, bounds, shard)->Wait();
    comm.AllGather(comm.world(), {1, 2}, shard, bounds, data)->Wait();
    EXPECT_TRUE(SameBits(data, (leaves[0] + leaves[1]) + leaves[2]));

    data = leaves[r].clone();
    comm.AllReduceSum(comm.world(), {1, 3}, data);
    comm.Broadcast(comm.world(), {1, 4}, 1, data)->Wait();
    EXPECT_TRUE(SameBits(data, (leaves[0] + leaves[1]) + leaves[2]));
  });
}

// The sender's tensor lives until it has left, although the receiver comes late.
TEST(Remote, BufferedSendsKeepTheirTensors) {
  RunRemote(2, [](Communicator& comm) {
    if (comm.rank() == 0) {
      for (uint64_t i = 0; i < 20; ++i)
        comm.Send(1, {1, i}, {at::full({300'000}, static_cast<float>(i)), at::ones({2})});
    } else {
      std::this_thread::sleep_for(milliseconds(50));
      for (uint64_t i = 0; i < 20; ++i) {
        const auto got = comm.Recv(0, {1, i})->TakeTensors();
        EXPECT_TRUE(at::equal(got[0], at::full({300'000}, static_cast<float>(i))));
        EXPECT_TRUE(at::equal(got[1], at::ones({2})));
      }
    }
  });
}

// Case K1: a process that was killed or stopped says nothing any more.
TEST(Remote, SilentPeerIsLostByNameAndAction) {
  const auto hub = std::make_shared<LocalHub>(3);
  RemoteOptions options;
  options.silence = milliseconds(600);
  options.heartbeat = milliseconds(100);
  options.world.grace = milliseconds(500);
  std::atomic<int> lost{0};
  const auto start = Clock::now();
  const std::string message = MessageOf<PeerLost>([&] {
    RunLocalRemoteRanks(hub, options, [&](Communicator& comm) {
      comm.SetCurrent(fmt::format("forward s{} m3", comm.rank()));
      comm.Barrier(comm.world(), {1, 0})->Wait();
      std::this_thread::sleep_for(milliseconds(200));  // all have heard of it
      if (comm.rank() == 2) {
        std::lock_guard lock(hub->mutex);
        hub->dead[2] = true;
        return;
      }
      try {
        at::Tensor data = at::ones({3'000'000});
        comm.AllReduceSum(comm.world(), {1, 1}, data)->Wait();
      } catch (const PeerLost& e) {
        EXPECT_EQ(e.rank(), 2);
        EXPECT_TRUE(Contains(e.what(), "all_reduce '1/1'"));
        ++lost;
        throw;
      }
    });
  });
  EXPECT_EQ(lost, 2);
  EXPECT_TRUE(Contains(message, "rank 2: lost while at 'forward s2 m3' since"));
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), 8);
}

// Long computation is no silence: the progress thread says that the rank is there.
TEST(Remote, BusyPeerIsNotLost) {
  RemoteOptions options;
  options.silence = milliseconds(400);
  options.heartbeat = milliseconds(50);
  RunLocalRemoteRanks(std::make_shared<LocalHub>(2), options, [](Communicator& comm) {
    if (comm.rank() == 0) std::this_thread::sleep_for(milliseconds(1200));
    comm.Barrier(comm.world(), {1, 0})->Wait();
  });
}

// Whoever fails first where several do: all end with the same words (RunLocalRemoteRanks compares them).
TEST(Remote, RanksThatFailTogetherAgreeOnOneFailure) {
  for (int round = 0; round < 20; ++round) {
    const std::string message = MessageOf<UserError>([&] {
      RunRemote(4, [&](Communicator& comm) {
        comm.Barrier(comm.world(), {1, 0})->Wait();
        if (comm.rank() > 0) throw UserError("no data for rank {}", comm.rank());
        comm.Recv(3, {2, 0})->Wait();
      });
    });
    EXPECT_TRUE(Contains(message, "no data for rank"));
  }
}

TEST(Remote, StuckRankIsReportedByName) {
  std::atomic<bool> release{false};
  std::string report;
  RemoteOptions options;
  options.world.grace = milliseconds(100);
  options.world.on_stuck = [&](const std::string& text) {
    report = text;
    release = true;
  };
  EXPECT_THROW(RunLocalRemoteRanks(std::make_shared<LocalHub>(2), options,
                                   [&](Communicator& comm) {
                                     comm.SetCurrent("forward s0 m0");
                                     if (comm.rank() == 0) throw WorldError("disk full");
                                     while (!release) std::this_thread::sleep_for(milliseconds(1));
                                   }),
               WorldError);
  EXPECT_TRUE(Contains(report, "rank 0 failed: disk full"));
  EXPECT_TRUE(Contains(report, "rank 1, which is at 'forward s0 m0'"));
}

TEST(Remote, StatusOfAPeerArrives) {
  RunRemote(2, [](Communicator& comm) {
    comm.SetCurrent(std::string(200, 'a' + static_cast<char>(comm.rank())));
    const auto start = Clock::now();
    while (comm.StatusOf(1 - comm.rank()).action.empty() && Clock::now() - start < milliseconds(10'000)) {
      std::this_thread::sleep_for(milliseconds(5));
    }
    EXPECT_EQ(comm.StatusOf(1 - comm.rank()).action, std::string(95, 'b' - static_cast<char>(comm.rank())));
    EXPECT_FALSE(comm.StatusOf(1 - comm.rank()).finished);
    comm.Barrier(comm.world(), {1, 0})->Wait();
  });
}

}  // namespace
}  // namespace penstock::comm
