// A rank dies, is late, returns early or does things in another order: a typed error on all, long before anybody would
// call it a hang.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "backends.h"
#include "base/this_rank.h"

namespace penstock::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// What each rank saw.
class Seen {
 public:
  explicit Seen(int n) : messages_(n) {}
  // Runs `call`, keeps its E and lets it pass on.
  template <typename E, typename Call>
  void Watch(int rank, const Call& call) {
    try {
      call();
    } catch (const E& e) {
      messages_[rank] = e.what();
      throw;
    }
  }
  const std::string& of(int rank) const { return messages_[rank]; }

 private:
  std::vector<std::string> messages_;  // each written by its own rank
};

class Failure : public BackendTest {};
PENSTOCK_FOR_ALL_BACKENDS(Failure);

TEST_P(Failure, ExceptionOfOneRankReachesAllAndTheCaller) {
  Seen seen(4);
  const auto start = Clock::now();
  const std::string message = MessageOf<UserError>([&] {
    Run(4, [&](Communicator& comm) {
      if (comm.rank() == 2) throw UserError("the corpus is empty");
      seen.Watch<PeerLost>(comm.rank(), [&] {
        if (comm.rank() == 0) comm.Recv(1, {})->Wait();  // would wait for a rank that is itself waiting
        at::Tensor data = at::ones({10});
        comm.AllReduceSum(comm.world(), {}, data)->Wait();
      });
    });
  });
  EXPECT_TRUE(Contains(message, "rank 2: the corpus is empty"));
  for (const int r : {0, 1, 3}) {
    EXPECT_TRUE(Contains(seen.of(r), "rank 2")) << r;
    EXPECT_TRUE(Contains(seen.of(r), "the corpus is empty")) << r;
  }
  EXPECT_LT(SecondsSince(start), 20);
}

TEST_P(Failure, ForeignExceptionsAreNamedToo) {
  EXPECT_TRUE(Contains(MessageOf<RankFailed>([&] {
                         Run(2, [](Communicator& comm) {
                           if (comm.rank() == 1) throw std::out_of_range("index 7");
                           comm.Recv(1, {})->Wait();
                         });
                       }),
                       "rank 1: index 7"));
  EXPECT_THROW(Run(2, [](Communicator&) { throw 1; }), RankFailed);
  // libtorch's own errors.
  EXPECT_THROW(Run(1, [](Communicator&) { at::ones({2}) + at::ones({3}); }), RankFailed);
}

TEST_P(Failure, LaterCallsThrowToo) {
  int refused = 0;
  EXPECT_THROW(Run(2,
                   [&](Communicator& comm) {
                     if (comm.rank() == 1) throw WorldError("disk full");
                     EXPECT_THROW(comm.Recv(1, {})->Wait(), PeerLost);
                     const std::vector<std::function<void()>> calls = {[&] { comm.Send(1, {}, {}); },
                                                                       [&] { comm.Recv(1, {}); },
                                                                       [&] { comm.Barrier(comm.world(), {}); }};
                     for (const auto& call : calls) {
                       try {
                         call();
                       } catch (const PeerLost& e) {
                         EXPECT_EQ(e.rank(), 1);
                         ++refused;
                       }
                     }
                   }),
               WorldError);
  EXPECT_EQ(refused, 3);
}

TEST_P(Failure, EarlyReturnIsNoticedBeforeTheDeadline) {
  const auto start = Clock::now();
  for (const bool collective : {false, true}) {
    const std::string message = MessageOf<PeerLost>([&] {
      Run(3, [&](Communicator& comm) {
        comm.SetTagNamer([](const Tag& tag) { return fmt::format("gradient {}", tag.which); });
        if (comm.rank() == 1) return;
        at::Tensor data = at::ones({3});
        if (collective) comm.AllReduceSum(comm.world(), {1, 5}, data)->Wait();
        comm.Recv(1, {1, 5})->Wait();
      });
    });
    EXPECT_TRUE(Contains(message, "rank 1 has ended"));
    EXPECT_TRUE(Contains(
        message, collective ? "all_reduce 'gradient 5' of group world {0, 1, 2}" : "receive 'gradient 5' from rank 1"));
  }
  EXPECT_LT(SecondsSince(start), 20);
}

// What a rank sent before it ended still counts.
TEST_P(Failure, MessagesOfAnEndedRankArrive) {
  Run(2, [](Communicator& comm) {
    if (comm.rank() == 0) {
      comm.Send(1, {}, {at::ones({2})});
      return;
    }
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_TRUE(at::equal(comm.Recv(0, {})->TakeTensors().at(0), at::ones({2})));
  });
}

TEST_P(Failure, DeadlineNamesWhoWaitsForWhatAndWhatThePeerDoes) {
  for (const bool collective : {false, true}) {
    Seen seen(3);
    std::atomic<bool> over{false};
    const std::string message = MessageOf<PeerLost>([&] {
      RunWithDeadline(3, 150, [&](Communicator& comm) {
        comm.SetTagNamer([](const Tag& tag) { return fmt::format("activation m{}", tag.which); });
        comm.SetCurrent(comm.rank() == 1 ? "forward s1 m4" : "waiting");
        if (comm.rank() == 1) {  // silent, but alive
          while (!over) std::this_thread::sleep_for(milliseconds(5));
          return;
        }
        seen.Watch<PeerLost>(comm.rank(), [&] {
          struct AtEnd {
            std::atomic<bool>& flag;
            ~AtEnd() { flag = true; }
          } at_end{over};
          if (collective) comm.Barrier(comm.world(), {0, 4})->Wait();
          comm.Recv(1, {0, 4})->Wait();
        });
      });
    });
    EXPECT_TRUE(Contains(message, "waits for rank 1, which is at 'forward s1 m4' since 0."));
    EXPECT_TRUE(Contains(message, collective ? "barrier 'activation m4'" : "receive 'activation m4' from rank 1"));
    EXPECT_FALSE(seen.of(0).empty());
    EXPECT_FALSE(seen.of(2).empty());
  }
}

// Files take as long as they take: nobody is given up while a rank saves.
TEST_P(Failure, HostWorkStopsTheClock) {
  RunWithDeadline(2, 100, [](Communicator& comm) {
    if (comm.rank() == 0) {
      {
        const HostWork work(comm);
        std::this_thread::sleep_for(milliseconds(400));
      }
      std::this_thread::sleep_for(milliseconds(40));  // what remains counts from here
      comm.Send(1, {0, 4}, {});
    } else {
      comm.Recv(0, {0, 4})->Wait();
    }
  });
  // And it goes on afterwards.
  const std::string message = MessageOf<PeerLost>([&] {
    RunWithDeadline(2, 100, [](Communicator& comm) {
      if (comm.rank() == 0) {
        { const HostWork work(comm); }
        std::this_thread::sleep_for(milliseconds(600));
        comm.Send(1, {0, 4}, {});
      } else {
        comm.Recv(0, {0, 4})->Wait();
      }
    });
  });
  EXPECT_TRUE(Contains(message, "no answer within"));
}

// Cases C1 and C6: the same things in another order are reported with both orders, on both ranks.
TEST_P(Failure, MessagesInAnotherOrder) {
  for (const bool send_first : {true, false}) {
    Seen seen(2);
    const std::string message = MessageOf<OrderMismatch>([&] {
      Run(2, [&](Communicator& comm) {
        comm.SetTagNamer([](const Tag& tag) { return fmt::format("F{}", tag.which); });
        seen.Watch<OrderMismatch>(comm.rank(), [&] {
          if (comm.rank() == 0) {
            if (!send_first) comm.Recv(1, {1, 9})->Wait();
            comm.Send(1, {0, 0}, {});
            comm.Send(1, {0, 1}, {});
            comm.Send(1, {0, 2}, {});
          } else {
            comm.Recv(0, {0, 0});
            const WorkPtr wrong = comm.Recv(0, {0, 2});
            if (!send_first) comm.Send(0, {1, 9}, {});
            wrong->Wait();
          }
          if (comm.rank() == 0) comm.Recv(1, {0, 3})->Wait();
        });
      });
    });
    EXPECT_TRUE(Contains(message, "message 1 from rank 0 to rank 1: rank 0 sent 'F1', rank 1 expects 'F2'"));
    EXPECT_TRUE(Contains(message, "order of receives: F0, F2"));
    for (const int r : {0, 1}) EXPECT_TRUE(Contains(seen.of(r), "rank 0 sent 'F1'"));
  }
}

TEST_P(Failure, CollectivesInAnotherOrder) {
  Seen seen(2);
  const std::string message = MessageOf<OrderMismatch>([&] {
    Run(2, [&](Communicator& comm) {
      comm.SetTagNamer([](const Tag& tag) { return tag.which == 0 ? "table a" : "table b"; });
      seen.Watch<OrderMismatch>(comm.rank(), [&] {
        for (const uint64_t i : {0, 1}) {
          comm.AllToAllV(comm.world(), {4, i ^ static_cast<uint64_t>(comm.rank())}, {at::ones({2}), at::ones({3})})
              ->Wait();
        }
      });
    });
  });
  for (const std::string& text : {message, seen.of(0), seen.of(1)}) {
    EXPECT_TRUE(Contains(text, "rank 0: all_to_all_v 'table a'"));
    EXPECT_TRUE(Contains(text, "rank 1: all_to_all_v 'table b'"));
  }
}

// Kind, type, length, root, leaves, shards: all must agree.
TEST_P(Failure, EveryPartOfACollectiveIsCompared) {
  using Call = std::function<WorkPtr(Communicator&, bool odd)>;
  const std::vector<Call> calls = {
      [](Communicator& c, bool odd) {
        return odd ? c.Barrier(c.world(), {}) : c.AllReduceSum(c.world(), {}, at::ones({2}));
      },
      [](Communicator& c, bool odd) {
        return c.AllReduceSum(c.world(), {}, at::ones({2}, odd ? at::kFloat : at::kDouble));
      },
      [](Communicator& c, bool odd) { return c.AllReduceSum(c.world(), {}, at::ones({odd ? 2 : 3})); },
      [](Communicator& c, bool odd) { return c.Broadcast(c.world(), {}, odd, at::ones({2})); },
      [](Communicator& c, bool odd) { return c.AllReduceTree(c.world(), {}, {}, odd ? 3 : 4, at::ones({2})); },
      [](Communicator& c, bool odd) {
        const int64_t border = odd ? 1 : 2;
        const int64_t mine = c.rank() == 0 ? border : 4 - border;
        return c.ReduceScatterSum(c.world(), {}, at::ones({4}), {0, border, 4}, at::empty({mine}));
      },
      [](Communicator& c, bool odd) {
        return c.AllGatherV(c.world(), {}, at::ones({2}, odd ? at::kFloat : at::kDouble));
      },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    std::atomic<int> refused{0};
    EXPECT_THROW(Run(2,
                     [&](Communicator& comm) {
                       try {
                         calls[i](comm, comm.rank() == 1)->Wait();
                       } catch (const OrderMismatch&) {
                         ++refused;
                         throw;
                       }
                     }),
                 OrderMismatch)
        << i;
    EXPECT_EQ(refused, 2) << i;
  }
}

TEST_P(Failure, WhatNobodyTookIsReported) {
  EXPECT_TRUE(Contains(MessageOf<OrderMismatch>([&] {
                         Run(2, [](Communicator& comm) {
                           comm.SetTagNamer([](const Tag&) { return "B1"; });
                           if (comm.rank() == 0) comm.Send(1, {}, {});
                         });
                       }),
                       "rank 1 never received 1 message of rank 0 (order of sends: B1)"));
  EXPECT_TRUE(Contains(MessageOf<OrderMismatch>([&] {
                         Run(2, [](Communicator& comm) {
                           if (comm.rank() == 1) comm.Barrier(comm.world(), {1, 2});
                         });
                       }),
                       "barrier '1/2' of group world {0, 1} was never posted by rank 0"));
}

// ---- particular to threads ----

TEST(ThreadRanks, StuckRankIsReportedByName) {
  std::atomic<bool> release{false};
  std::string report;
  ThreadWorldOptions options;
  options.grace = milliseconds(100);
  options.on_stuck = [&](const std::string& text) {
    report = text;
    release = true;
  };
  EXPECT_THROW(RunThreadRanks(2, options,
                              [&](Communicator& comm) {
                                comm.SetCurrent("forward s0 m0");
                                if (comm.rank() == 0) throw WorldError("disk full");
                                while (!release) std::this_thread::sleep_for(milliseconds(1));
                              }),
               WorldError);
  EXPECT_TRUE(Contains(report, "rank 0 failed: disk full"));
  EXPECT_TRUE(Contains(report, "rank 1, which is at 'forward s0 m0'"));
}

TEST(ThreadRanksDeathTest, StuckRankEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(RunThreadRanks(2, {.grace = milliseconds(50)},
                             [](Communicator& comm) {
                               if (comm.rank() == 0) throw WorldError("disk full");
                               for (;;) std::this_thread::sleep_for(milliseconds(50));
                             }),
              testing::ExitedWithCode(1), "rank 0 failed: disk full");
}

TEST(ThreadRanks, ThreadsAreSetUp) {
  RunThreadRanks(3, {.intra_op_threads = 2}, [](Communicator& comm) {
    EXPECT_EQ(ThisRank(), comm.rank());
    EXPECT_EQ(at::get_num_threads(), 2);
    EXPECT_FALSE(c10::AutogradState::get_tls_state().get_multithreading_enabled());
    EXPECT_TRUE(at::GradMode::is_enabled());
    const at::Tensor tiny = at::full({64}, 1e-40f);
    EXPECT_GT((tiny * 0.5f)[0].item<float>(), 0.0f);  // denormals are kept
    EXPECT_EQ(comm.size(), 3);
    EXPECT_EQ(comm.world().size(), 3);
  });
  EXPECT_EQ(ThisRank(), -1);
  RunThreadRanks(1, {.flush_denormals = true},
                 [](Communicator&) { EXPECT_EQ((at::full({64}, 1e-40f) * 0.5f)[0].item<float>(), 0.0f); });
}

TEST(ThreadRanks, StatusIsReadableWhileItChanges) {
  RunThreadRanks(2, {}, [](Communicator& comm) {
    if (comm.rank() == 0) {
      for (int i = 0; i < 20'000; ++i) comm.SetCurrent(i % 2 == 0 ? std::string(95, 'a') : std::string(200, 'b'));
      comm.Send(1, {}, {});
      comm.Recv(1, {})->Wait();
    } else {
      const WorkPtr over = comm.Recv(0, {});
      while (!over->Done()) {
        const std::string text = comm.StatusOf(0).action;
        if (text.empty()) continue;
        EXPECT_EQ(text, std::string(95, text[0]));  // never half of each
      }
      EXPECT_EQ(comm.StatusOf(0).action, std::string(95, 'b'));
      EXPECT_GE(comm.StatusOf(0).seconds, 0.0);
      EXPECT_FALSE(comm.StatusOf(0).finished);
      comm.Send(0, {}, {});
    }
  });
}

}  // namespace
}  // namespace penstock::comm
