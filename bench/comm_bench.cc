// bench/comm_bench.cc
//
// What the thread back end costs: one hand-over between two ranks (both ways of waiting: spinning happens only while
// every rank has a core), and the tree all-reduce against one copy of the same bytes. Figures of docs/decisions.md,
// "hand-over and all-reduce between rank threads". Time is wall time of rank 0.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>

#include "comm/thread_ranks.h"

namespace penstock::comm {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One way. range(0): ranks in the world; two of them play, the others sleep in a receive.
void PingPong(benchmark::State& state) {
  RunThreadRanks(static_cast<int>(state.range(0)), {}, [&](Communicator& comm) {
    constexpr int kRounds = 1000;
    if (comm.rank() == 0) {
      for (auto _ : state) {
        const auto start = Clock::now();
        for (int i = 0; i < kRounds; ++i) {
          comm.Send(1, {1, 0}, {});
          comm.Recv(1, {1, 0})->Wait();
        }
        state.SetIterationTime(SecondsSince(start) / (2 * kRounds));
      }
      for (int r = 1; r < comm.size(); ++r) comm.Send(r, {2, 0}, {});
    } else if (comm.rank() == 1) {
      for (int64_t i = 0; i < static_cast<int64_t>(state.max_iterations) * kRounds; ++i) {
        comm.Recv(0, {1, 0})->Wait();
        comm.Send(0, {1, 0}, {});
      }
      comm.Recv(0, {2, 0})->Wait();
    } else {
      comm.Recv(0, {2, 0})->Wait();
    }
  });
}
BENCHMARK(PingPong)->ArgName("ranks")->Arg(2)->Arg(8)->UseManualTime()->Iterations(20)->Unit(benchmark::kMicrosecond);

// range(0): ranks, range(1): megabytes. One node per rank.
void AllReduceTree(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const int64_t elements = state.range(1) * (1 << 20) / 4;
  RunThreadRanks(ranks, {}, [&](Communicator& comm) {
    at::Tensor data = at::ones({elements});
    const TreeNode node{comm.rank(), comm.rank() + 1};
    const auto once = [&] {
      comm.AllReduceTree(comm.world(), {1, 0}, {{node, data}}, ranks, data)->Wait();
      comm.Barrier(comm.world(), {2, 0})->Wait();
    };
    if (comm.rank() == 0) {
      for (auto _ : state) {
        const auto start = Clock::now();
        once();
        state.SetIterationTime(SecondsSince(start));
      }
    } else {
      for (int64_t i = 0; i < static_cast<int64_t>(state.max_iterations); ++i) once();
    }
  });
  state.SetBytesProcessed(state.iterations() * elements * 4);
}
BENCHMARK(AllReduceTree)
    ->ArgNames({"ranks", "MB"})
    ->ArgsProduct({{2, 4, 8}, {1, 16, 64}})
    ->UseManualTime()
    ->Iterations(20)
    ->Unit(benchmark::kMillisecond);

void Copy(benchmark::State& state) {
  const int64_t bytes = state.range(0) << 20;
  const at::Tensor from = at::ones({bytes / 4});
  at::Tensor to = at::empty_like(from);
  for (auto _ : state) std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), bytes);
  state.SetBytesProcessed(state.iterations() * bytes);
}
BENCHMARK(Copy)->ArgName("MB")->Arg(1)->Arg(16)->Arg(64)->Iterations(20)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::comm

BENCHMARK_MAIN();
