// The contract of comm/communicator.h between processes: started by tests/program/mpi.py as mpirun -n N mpi_contract
// MODE.
//   contract           every operation and every kind of failure, a world each; exit status 1 when anything is wrong
//   kill | stop RANK   that rank sends itself SIGKILL or SIGSTOP in the middle of an all-reduce; the others must see
//                      PeerLost, say so ("lost: ...") and end with exit status 1
//   alone              a world, whatever the launcher; prints its size
// With one process several parts are trivial; the script starts 2, 3 and 4.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi_ranks.h"

namespace penstock::comm {
namespace {

using std::chrono::milliseconds;

int failures = 0;  // of this process
int comparisons = 0;
std::string check_name;

void Expect(bool right, const std::string& what) {
  ++comparisons;
  if (right) return;
  ++failures;
  std::fprintf(stderr, "%s: wrong: %s\n", check_name.c_str(), what.c_str());
}

using Body = std::function<void(Communicator&)>;

void World(const std::string& name, const Body& body, milliseconds deadline = milliseconds(60'000)) {
  check_name = name;
  RunMpiRank({.world = {.deadline = deadline, .grace = milliseconds(20'000)}}, body);
}

void Passes(const std::string& name, const Body& body, milliseconds deadline = milliseconds(60'000)) {
  try {
    World(name, body, deadline);
  } catch (const std::exception& e) {
    Expect(false, fmt::format("an exception: {}", e.what()));
  }
}

// E with all of `parts` in its text, on every process.
template <typename E>
void Fails(const std::string& name, const std::vector<std::string>& parts, const Body& body,
           milliseconds deadline = milliseconds(60'000)) {
  const auto start = std::chrono::steady_clock::now();
  try {
    World(name, body, deadline);
    Expect(false, "no exception");
  } catch (const E& e) {
    for (const std::string& part : parts)
      Expect(std::string(e.what()).find(part) != std::string::npos, fmt::format("'{}' is not in: {}", part, e.what()));
  } catch (const std::exception& e) {
    Expect(false, fmt::format("another exception: {}", e.what()));
  }
  Expect(std::chrono::steady_clock::now() - start < std::chrono::seconds(20), "it took as long as a hang");
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.numel() * a.element_size()) == 0);
}

// ---- operations ----

void Sums(Communicator& comm) {
  const int n = comm.size(), r = comm.rank();
  for (const auto type : {at::kFloat, at::kDouble, at::kInt, at::kLong}) {
    for (const int64_t length : {0, 1, 3, 1023, 40'001, 3'000'001}) {  // the last: many pieces
      const at::Tensor ramp = at::arange(length, at::TensorOptions(type)).remainder(1000);
      at::Tensor data = ramp + r;
      comm.AllReduceSum(comm.world(), {1, 0}, data)->Wait();
      Expect(at::equal(data, ramp * n + n * (n - 1) / 2), fmt::format("all-reduce of {}", length));
      const auto bounds = ShardBounds(length, n, 64);
      at::Tensor in = ramp * (r + 1);
      at::Tensor shard = in.slice(0, bounds[r], bounds[r + 1]);
      comm.ReduceScatterSum(comm.world(), {1, 1}, in, bounds, shard)->Wait();
      comm.AllGather(comm.world(), {1, 2}, shard, bounds, in)->Wait();
      Expect(at::equal(in, ramp * (n * (n + 1) / 2)), fmt::format("reduce-scatter and all-gather of {}", length));
    }
  }
  // Left to right, to the bit.
  std::vector<float> values = {1e8f, 1.5f, -1e8f, 0.25f};
  at::Tensor data = at::full({33}, values[r % 4], at::kFloat);
  comm.AllReduceSum(comm.world(), {1, 3}, data)->Wait();
  float sum = values[0];
  for (int i = 1; i < n; ++i) sum += values[i % 4];
  Expect(SameBits(data, at::full({33}, sum, at::kFloat)), "order of additions");
  // In order without waiting in between, on one tensor.
  at::Tensor queue = at::ones({20'000}, at::kDouble);
  WorkPtr last;
  for (uint64_t i = 0; i < 8; ++i) last = comm.AllReduceSum(comm.world(), {1, 10 + i}, queue);
  last->Wait();
  Expect(at::equal(queue, at::full({20'000}, std::pow(n, 8), at::kDouble)), "queue of one group");
}

void Gathers(Communicator& comm) {
  const int n = comm.size(), r = comm.rank();
  for (const int64_t unit : {0, 3, 200'000}) {
    const auto got = comm.AllGatherV(comm.world(), {2, 0}, at::full({r * unit}, r, at::kDouble))->TakeTensors();
    std::vector<at::Tensor> parts;
    for (int to = 0; to < n; ++to) parts.push_back(at::full({(r + to) % 3 * unit}, r * 100 + to, at::kLong));
    const auto swapped = comm.AllToAllV(comm.world(), {2, 1}, parts)->TakeTensors();
    for (int i = 0; i < n; ++i) {
      Expect(at::equal(got[i], at::full({i * unit}, i, at::kDouble)), "all-gather of free lengths");
      Expect(at::equal(swapped[i], at::full({(i + r) % 3 * unit}, i * 100 + r, at::kLong)), "all-to-all");
    }
    for (int root = 0; root < n; ++root) {
      at::Tensor data = at::full({unit}, r + 1, at::kHalf);
      comm.Broadcast(comm.world(), {2, 2}, root, data)->Wait();
      Expect(at::equal(data, at::full({unit}, root + 1, at::kHalf)), "broadcast");
    }
  }
  for (uint64_t i = 0; i < 20; ++i) comm.Barrier(comm.world(), {2, 10 + i})->Wait();
}

void Messages(Communicator& comm) {
  const int n = comm.size(), r = comm.rank(), next = (r + 1) % n, before = (r + n - 1) % n;
  for (const int64_t length : {0, 1, 17, 4096, 1'000'003}) {
    const at::Tensor base = at::arange(64, at::kFloat) + r;
    comm.Send(next, {3, static_cast<uint64_t>(length)},
              {at::full({length}, r, at::kFloat), at::Tensor(), base.view({8, 8}).t(), base.slice(0, 1, 17)});
    const auto got = comm.Recv(before, {3, static_cast<uint64_t>(length)})->TakeTensors();
    Expect(at::equal(got[0], at::full({length}, before, at::kFloat)), "contents");
    Expect(!got[1].defined(), "an undefined tensor");
    Expect(at::equal(got[2], (at::arange(64, at::kFloat) + before).view({8, 8}).t()), "a transposed tensor");
    for (const size_t i : {0, 2, 3}) {
      Expect(got[i].is_contiguous() && reinterpret_cast<uintptr_t>(got[i].const_data_ptr()) % 64 == 0, "alignment");
    }
  }
  if (n == 1) return;
  constexpr uint64_t kMessages = 200;  // small and large in turns: order is that of the sends
  const auto contents = [](uint64_t i) {
    return at::full({i % 2 == 0 ? 1 : 50'000}, static_cast<double>(i), at::kDouble);
  };
  if (r == 0) {
    for (uint64_t i = 0; i < kMessages; ++i) comm.Send(1, {4, i}, {contents(i)});
  } else if (r == 1) {
    std::vector<WorkPtr> posted;
    for (uint64_t i = 0; i < kMessages; ++i) posted.push_back(comm.Recv(0, {4, i}));
    for (uint64_t i = kMessages; i-- > 0;) Expect(at::equal(posted[i]->TakeTensors().at(0), contents(i)), "order");
  }
}

at::Tensor Reference(const std::vector<at::Tensor>& leaves, int32_t lo, int32_t hi) {
  if (hi - lo == 1) return leaves[lo];
  const int32_t mid = lo + (hi - lo + 1) / 2;
  const at::Tensor a = Reference(leaves, lo, mid), b = Reference(leaves, mid, hi);
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

void Trees(Communicator& comm) {
  std::mt19937_64 random(comm.size());  // all processes draw the same cases
  for (int i = 0; i < 60; ++i) {
    const auto type = i % 2 == 0 ? at::kFloat : at::kDouble;
    const int32_t n = 1 + static_cast<int32_t>(random() % 16);
    const int64_t length = i % 10 == 0 ? 900'001 : 1 + static_cast<int64_t>(random() % 40);
    std::vector<at::Tensor> leaves;
    std::vector<std::vector<int32_t>> mine(comm.size());
    for (int32_t leaf = 0; leaf < n; ++leaf) {
      const bool absent = i % 4 >= 2 && random() % 3 == 0;
      leaves.push_back(absent ? at::Tensor()
                              : at::full({length}, std::ldexp(double(random() % 1000), int(random() % 24) - 12), type));
      if (!absent) leaves.back().add_(at::arange(length, at::TensorOptions(type)), 1e-3);
      mine[random() % comm.size()].push_back(leaf);
    }
    Communicator::Contributions nodes;
    for (const TreeNode node : MaximalNodes(mine[comm.rank()], n)) {
      const at::Tensor sum = Reference(leaves, node.lo, node.hi);
      if (sum.defined()) nodes.emplace_back(node, sum.clone());
    }
    at::Tensor expected = Reference(leaves, 0, n);
    if (!expected.defined()) expected = at::zeros({length}, type);
    const auto bounds = ShardBounds(length, comm.size(), 4);
    const int r = comm.rank();
    at::Tensor shard = at::empty({bounds[r + 1] - bounds[r]}, type);
    comm.ReduceScatterTree(comm.world(), {5, 0}, nodes, n, bounds, shard)->Wait();
    Expect(SameBits(shard, expected.slice(0, bounds[r], bounds[r + 1]).clone()), fmt::format("sharded tree {}", i));
    at::Tensor out = nodes.empty() ? at::full({length}, 42, type) : nodes[0].second;
    comm.AllReduceTree(comm.world(), {5, 1}, nodes, n, out)->Wait();
    Expect(SameBits(out, expected), fmt::format("tree {}", i));
  }
}

void Groups(Communicator& comm) {
  const int n = comm.size(), r = comm.rank();
  // Made in different orders; every process is in two of them, but in a world of two or one.
  std::vector<Group> pairs(n);
  for (int i = 0; i < n; ++i) {
    const int at = r % 2 == 0 ? i : n - 1 - i, other = (at + 1) % n;
    if (at != other)
      pairs[at] = comm.CreateGroup({std::min(at, other), std::max(at, other)}, fmt::format("pair {}", at));
  }
  std::vector<WorkPtr> works;
  std::vector<at::Tensor> sums(n);
  for (int i = 0; i < n; ++i) {
    const int at = r % 2 == 0 ? i : n - 1 - i;  // and used in different orders
    if (pairs[at].size() == 0 || pairs[at].rank() < 0) continue;
    sums[at] = at::full({100'000}, r + 1, at::kFloat);
    works.push_back(comm.AllReduceSum(pairs[at], {6, static_cast<uint64_t>(at)}, sums[at]));
  }
  for (const WorkPtr& work : works) work->Wait();
  for (int i = 0; i < n; ++i) {
    if (sums[i].defined()) Expect(at::equal(sums[i], at::full({100'000}, i + (i + 1) % n + 2, at::kFloat)), "pairs");
  }
}

void Bytes(Communicator& comm) {
  const int64_t d = comm.size(), n = 840 * 8, bytes = n * 4;
  const auto others = static_cast<uint64_t>(d - 1);
  const auto ring = static_cast<uint64_t>(2 * (d - 1) * bytes / d);
  const auto count = [&](CommKind kind, uint64_t messages, uint64_t expected) {
    const Traffic counted = comm.traffic().of(kind);
    Expect(counted == Traffic{expected > 0 ? messages : 0, expected} && comm.traffic().Total() == counted,
           fmt::format("{}: {} bytes in {} messages", ToString(kind), counted.bytes, counted.messages));
    comm.ResetTraffic();
  };
  const auto bounds = ShardBounds(n, comm.size());
  at::Tensor data = at::ones({n}), shard = at::empty({n / d});
  comm.AllReduceSum(comm.world(), {}, data)->Wait();
  count(CommKind::all_reduce, 2 * others, ring);
  comm.AllReduceTree(comm.world(), {}, {{TreeNode{comm.rank(), comm.rank() + 1}, data}}, comm.size(), data)->Wait();
  count(CommKind::all_reduce_tree, 2 * others, ring);
  comm.ReduceScatterSum(comm.world(), {}, data, bounds, shard)->Wait();
  count(CommKind::reduce_scatter, others, ring / 2);
  comm.AllGather(comm.world(), {}, shard, bounds, data)->Wait();
  count(CommKind::all_gather, others, ring / 2);
  comm.Broadcast(comm.world(), {}, 0, data)->Wait();
  count(CommKind::broadcast, others, comm.rank() == 0 ? others * bytes : 0);
}

// ---- failures; they need a peer ----

void Failures(int last) {
  Fails<UserError>("error of one rank", {fmt::format("rank {}: the corpus is empty", last)}, [=](Communicator& comm) {
    if (comm.rank() == last) throw UserError("the corpus is empty");
    try {
      at::Tensor data = at::ones({1'000'000});
      comm.AllReduceSum(comm.world(), {}, data)->Wait();
      Expect(false, "an all-reduce without everybody ended");
    } catch (const PeerLost& e) {
      Expect(std::string(e.what()).find("the corpus is empty") != std::string::npos, e.what());
      Expect(e.rank() == last, "the rank of PeerLost");
      for (const Body& call :
           {Body([](Communicator& c) { c.Send(0, {}, {}); }), Body([](Communicator& c) { c.Recv(0, {}); }),
            Body([](Communicator& c) { c.Barrier(c.world(), {}); })}) {
        try {
          call(comm);
          Expect(false, "a call after the failure went through");
        } catch (const PeerLost&) {
          ++comparisons;
        }
      }
      throw;
    }
  });
  Fails<RankFailed>("foreign exception", {fmt::format("rank {}: index 7", last)}, [=](Communicator& comm) {
    if (comm.rank() == last) throw std::out_of_range("index 7");
    comm.Recv(last, {})->Wait();
  });
  for (const bool collective : {false, true}) {
    Fails<PeerLost>("early return", {fmt::format("rank {} has ended", last), "gradient 5"}, [=](Communicator& comm) {
      comm.SetTagNamer([](const Tag& tag) { return fmt::format("gradient {}", tag.which); });
      if (comm.rank() == last) return;
      at::Tensor data = at::ones({3});
      if (collective) comm.AllReduceSum(comm.world(), {1, 5}, data)->Wait();
      comm.Recv(last, {1, 5})->Wait();
    });
  }
  Passes("messages of an ended rank", [=](Communicator& comm) {
    if (comm.rank() == 0) comm.Send(last, {}, {at::ones({2}), at::ones({100'000})});
    if (comm.rank() != last) return;
    std::this_thread::sleep_for(milliseconds(50));
    Expect(at::equal(comm.Recv(0, {})->TakeTensors().at(1), at::ones({100'000})), "what it sent");
  });
  Fails<PeerLost>(
      "deadline", {fmt::format("waits for rank {}, which is at 'forward s1 m4' since", last), "no answer within"},
      [=](Communicator& comm) {
        comm.SetCurrent(comm.rank() == last ? "forward s1 m4" : "waiting");
        if (comm.rank() == last) std::this_thread::sleep_for(milliseconds(1000));
        comm.Barrier(comm.world(), {0, 4})->Wait();
      },
      milliseconds(400));
  Passes(
      "host work",
      [=](Communicator& comm) {
        if (comm.rank() == last) {
          const HostWork work(comm);
          std::this_thread::sleep_for(milliseconds(900));
        }
        comm.Barrier(comm.world(), {})->Wait();
      },
      milliseconds(300));
  Fails<OrderMismatch>("order of messages",
                       {"rank 0 sent 'F1'", "expects 'F2'", "order of sends: F0, F1", "order of receives: F0, F2"},
                       [=](Communicator& comm) {
                         comm.SetTagNamer([](const Tag& tag) { return fmt::format("F{}", tag.which); });
                         if (comm.rank() == 0) {
                           comm.Send(last, {0, 0}, {});
                           comm.Send(last, {0, 1}, {});
                           comm.Recv(last, {0, 3})->Wait();
                         } else if (comm.rank() == last) {
                           comm.Recv(0, {0, 0});
                           comm.Recv(0, {0, 2})->Wait();
                         } else {
                           comm.Recv(last, {0, 3})->Wait();
                         }
                       });
  Fails<OrderMismatch>(
      "order of collectives", {"all_to_all_v 'table a'", "all_reduce 'table b'"}, [=](Communicator& comm) {
        comm.SetTagNamer([](const Tag& tag) { return tag.which == 0 ? "table a" : "table b"; });
        if (comm.rank() == last) {
          comm.AllReduceSum(comm.world(), {4, 1}, at::ones({2}))->Wait();
        } else {
          comm.AllToAllV(comm.world(), {4, 0}, std::vector<at::Tensor>(comm.size(), at::ones({2})))->Wait();
        }
      });
  Fails<OrderMismatch>("length of a collective", {"all_reduce '0/0' (Float, 2 elements)", "3000000 elements"},
                       [=](Communicator& comm) {
                         at::Tensor data = at::ones({comm.rank() == last ? 2 : 3'000'000});
                         comm.AllReduceSum(comm.world(), {}, data)->Wait();
                       });
  Fails<OrderMismatch>("the same leaf twice", {"share leaves"}, [=](Communicator& comm) {
    at::Tensor out = at::empty({3});
    comm.AllReduceTree(comm.world(), {3, 1}, {{TreeNode{0, 2}, at::ones({3})}}, 4, out)->Wait();
  });
  Fails<OrderMismatch>("a message nobody took", {fmt::format("rank {} never received 1 message of rank 0", last)},
                       [=](Communicator& comm) {
                         if (comm.rank() == 0) comm.Send(last, {}, {at::ones({500'000})});
                       });
  Fails<OrderMismatch>("a collective not everybody posted", {"barrier '1/2' of group world", "never posted by rank 0"},
                       [=](Communicator& comm) {
                         if (comm.rank() == last) comm.Barrier(comm.world(), {1, 2});
                       });
}

int Contract() {
  int size = 0;
  Passes("begin", [&](Communicator& comm) {
    size = comm.size();
    Expect(comm.backend() == "mpi" && comm.rank() >= 0 && comm.rank() < size, "the communicator");
  });
  Passes("sums", &Sums);
  Passes("gathers", &Gathers);
  Passes("messages", &Messages);
  Passes("trees", &Trees);
  Passes("groups", &Groups);
  Passes("bytes", &Bytes);
  if (size > 1) Failures(size - 1);
  Passes("a world after the failures", &Sums);
  // Every process's count, at rank 0.
  Passes("end", [&](Communicator& comm) {
    at::Tensor counts = at::tensor(std::vector<int64_t>{comparisons, failures});
    comm.AllReduceSum(comm.world(), {}, counts)->Wait();
    if (comm.rank() == 0)
      std::printf("%lld comparisons on %d processes, %lld wrong\n", static_cast<long long>(counts[0].item<int64_t>()),
                  size, static_cast<long long>(counts[1].item<int64_t>()));
  });
  return failures == 0 ? 0 : 1;
}

int Lose(int victim, int signal) {
  try {
    RunMpiRank({}, [&](Communicator& comm) {
      comm.SetCurrent(fmt::format("all-reduce of step 3 on {}", comm.rank()));
      at::Tensor data = at::ones({8'000'000});
      for (uint64_t step = 0; step < 1000; ++step) {
        const WorkPtr work = comm.AllReduceSum(comm.world(), {1, step}, data);
        if (step == 20 && comm.rank() == victim) {
          std::printf("signal: rank %d\n", victim);
          std::fflush(stdout);
          kill(getpid(), signal);
        }
        work->Wait();
      }
    });
  } catch (const PeerLost& e) {
    std::printf("lost: %s\n", e.what());
    return 1;
  }
  return 0;
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    if (mode == "contract") return Contract();
    if ((mode == "kill" || mode == "stop") && argc > 2)
      return Lose(std::atoi(argv[2]), mode == "kill" ? SIGKILL : SIGSTOP);
    if (mode == "alone") {
      RunMpiRank({}, [](Communicator& comm) { std::printf("a world of %d\n", comm.size()); });
      return 0;
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.exit_code();
  }
  std::fprintf(stderr, "usage: mpi_contract contract | kill RANK | stop RANK | alone\n");
  return 2;
}

}  // namespace
}  // namespace penstock::comm

int main(int argc, char** argv) { return penstock::comm::Main(argc, argv); }
