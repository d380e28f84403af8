// The times of emulated links: to the nanosecond where every rank has a clock of its own, and never too early on the
// real one. That they are a Communicator like the others, the contract tests say (backends.h).
#include "comm/emulated_links.h"

#include <ATen/ATen.h>

#include "backends.h"

namespace penstock::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Time = TimeSource::Time;

// 1 ms + 1 us a byte, latency 10 ms (100 ms upwards); collectives 1 ms a member and 1 us a byte.
class Model final : public LinkModel {
 public:
  LinkSeconds Message(int from, int to, int64_t bytes) const override {
    return {from < to ? 0.01 : 0.1, 1e-3 + 1e-6 * static_cast<double>(bytes)};
  }
  double Collective(const std::vector<int>& ranks, std::string_view kind, int64_t bytes) const override {
    return kind == "broadcast" ? 0.5 : 1e-3 * static_cast<double>(ranks.size()) + 1e-6 * static_cast<double>(bytes);
  }
};
const Model kModel;

// Microseconds since the epoch of the rank's clock.
int64_t Micro(Time time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
Time AtMicro(int64_t us) { return Time(std::chrono::microseconds(us)); }

void RunVirtual(int n, const std::function<void(EmulatedLinks&, VirtualTime&)>& body) {
  RunThreadRanks(n, {}, [&](Communicator& communicator) {
    VirtualTime time;
    EmulatedLinks links(communicator, kModel, time);
    body(links, time);
  });
}

at::Tensor Bytes(int64_t n) { return at::zeros({n}, at::kByte); }

TEST(EmulatedLinks, MessagesOfOneChannelFollowEachOther) {
  RunVirtual(3, [](EmulatedLinks& links, VirtualTime& time) {
    if (links.rank() == 0) {
      time.SleepUntil(AtMicro(100'000));
      WorkPtr first = links.Send(1, {1, 0}, {Bytes(1000)});  // busy 2 ms
      links.Send(1, {1, 1}, {Bytes(3000)});                  // busy 4 ms, after the first
      links.Send(2, {1, 2}, {Bytes(0)});                     // another channel: at once
      EXPECT_EQ(Micro(time.Now()), 100'000) << "a send does not block";
      EXPECT_FALSE(first->Done());
      time.SleepUntil(AtMicro(120'000));
      links.Send(1, {1, 3}, {});  // the channel is free again
      first->Wait();
      EXPECT_EQ(Micro(time.Now()), 120'000);
    } else if (links.rank() == 1) {
      std::vector<WorkPtr> posted;
      for (const uint64_t i : {0, 1, 3}) posted.push_back(links.Recv(0, {1, i}));
      std::vector<int64_t> ends;
      for (const WorkPtr& work : posted) {
        work->Wait();
        EXPECT_TRUE(work->Done());
        ends.push_back(Micro(time.Now()));
      }
      EXPECT_EQ(ends, (std::vector<int64_t>{112'000, 116'000, 131'000}));
      EXPECT_EQ(posted[0]->TakeTensors().at(0).numel(), 1000);
      EXPECT_EQ(posted[2]->TakeTensors().size(), 0u);
    } else {
      time.SleepUntil(AtMicro(105'000));
      WorkPtr work = links.Recv(0, {1, 2});
      EXPECT_EQ(Micro(std::static_pointer_cast<TimedWork>(work)->EndTime()), 111'000);
      EXPECT_EQ(Micro(time.Now()), 105'000) << "asking is not waiting";
      EXPECT_FALSE(work->Done());
      EXPECT_EQ(links.waits(), 0);
      work->Wait();
      EXPECT_EQ(Micro(time.Now()), 111'000);
      EXPECT_EQ(links.waits(), 1);
      EXPECT_EQ(Micro(links.waited_until()), 111'000);
    }
  });
}

TEST(EmulatedLinks, DirectionsAndOneself) {
  RunVirtual(2, [](EmulatedLinks& links, VirtualTime& time) {
    const int other = 1 - links.rank();
    links.Send(links.rank(), {2, 0}, {Bytes(5)});
    EXPECT_EQ(links.Recv(links.rank(), {2, 0})->TakeTensors().at(0).numel(), 5);
    EXPECT_EQ(Micro(time.Now()), 0);
    links.Send(other, {2, 1}, {});
    links.Recv(other, {2, 1})->Wait();
    EXPECT_EQ(Micro(time.Now()), links.rank() == 1 ? 11'000 : 101'000);
  });
}

TEST(EmulatedLinks, DeclaredSizesAndPricesCountOnce) {
  RunVirtual(2, [](EmulatedLinks& links, VirtualTime& time) {
    if (links.rank() == 0) {
      links.DeclareBytes(49'000);
      links.Send(1, {3, 0}, {Bytes(4)});
      links.DeclareSeconds({.latency = 1, .transfer = 0.05});
      links.Send(1, {3, 1}, {Bytes(4)});
      links.Send(1, {3, 2}, {Bytes(0)});
      EXPECT_EQ(links.traffic().of(CommKind::send), (Traffic{2, 8})) << "traffic is what travels";
    } else {
      std::vector<int64_t> ends;
      for (const uint64_t i : {0, 1, 2}) {
        auto work = std::static_pointer_cast<TimedWork>(links.Recv(0, {3, i}));
        ends.push_back(Micro(work->EndTime()));
        work->Wait();
      }
      EXPECT_EQ(ends, (std::vector<int64_t>{60'000, 1'100'000, 111'000}));
      EXPECT_EQ(Micro(time.Now()), 1'100'000);
    }
  });
}

TEST(EmulatedLinks, CollectivesBeginWithTheLastMemberAndQueue) {
  RunVirtual(3, [](EmulatedLinks& links, VirtualTime& time) {
    const int r = links.rank();
    time.SleepUntil(AtMicro(1000 * r));
    at::Tensor data = at::ones({1000});
    WorkPtr first = links.AllReduceSum(links.world(), {4, 0}, data);            // 2 + 3 + 4 = 9 ms
    WorkPtr second = links.AllGatherV(links.world(), {4, 1}, Bytes(1000 * r));  // then 3 + 3 ms: 0, 1000, 2000 bytes
    links.DeclareSeconds({.latency = 0, .transfer = 1e-3 * (r + 1)});
    WorkPtr third = links.Broadcast(links.world(), {4, 2}, 0, data);  // the highest: 3 ms
    links.DeclareBytes(7000);
    WorkPtr fourth = links.AllReduceSum(links.world(), {4, 3}, at::ones({1}));  // 3 + 7
    EXPECT_EQ(Micro(time.Now()), 1000 * r);
    if (r == 1) {  // waits for the last one only
      fourth->Wait();
      EXPECT_TRUE(first->Done() && second->Done() && third->Done());
    }
    const auto end = [](const WorkPtr& work) { return Micro(std::static_pointer_cast<TimedWork>(work)->EndTime()); };
    EXPECT_EQ(end(first), 9'000);
    EXPECT_EQ(end(second), 15'000);
    EXPECT_EQ(end(third), 18'000);
    EXPECT_EQ(end(fourth), 28'000);
    first->Wait();
    EXPECT_TRUE(at::equal(data, at::full({1000}, 3.0f)));
    EXPECT_EQ(Micro(time.Now()), r == 1 ? 28'000 : 9'000);
    // Groups do not wait for each other.
    if (r < 2) {
      const Group pair = links.CreateGroup({0, 1}, "pair");
      auto work = links.AllReduceSum(pair, {4, 4}, at::ones({1}));
      EXPECT_EQ(end(work), 28'000 + 2'004);
      work->Wait();
    }
    fourth->Wait();
  });
}

// A signal that was given long ago holds nobody up.
TEST(EmulatedLinks, BarrierIsMessagesFromEachToEach) {
  for (const bool late : {false, true}) {
    RunVirtual(2, [late](EmulatedLinks& links, VirtualTime& time) {
      if (links.rank() == 1) time.SleepUntil(AtMicro(late ? 50'000 : 1'000));
      WorkPtr work = links.Barrier(links.world(), {5, 0});
      const int64_t end = Micro(std::static_pointer_cast<TimedWork>(work)->EndTime());
      const int64_t other = late ? 50'000 : 1'000;  // when rank 1 came
      EXPECT_EQ(end, links.rank() == 0 ? other + 101'000 : std::max<int64_t>(other, 11'000));
      work->Wait();
      EXPECT_EQ(Micro(time.Now()), end);
    });
  }
}

TEST(EmulatedLinks, TimeScale) {
  RunThreadRanks(2, {}, [](Communicator& communicator) {
    VirtualTime time;
    EmulatedLinks links(communicator, kModel, time, 3);
    if (links.rank() == 0) links.Send(1, {6, 0}, {});
    if (links.rank() == 1) {
      links.Recv(0, {6, 0})->Wait();
      EXPECT_EQ(Micro(time.Now()), 33'000);
    }
  });
  RunThreadRanks(1, {}, [](Communicator& communicator) {
    EXPECT_THROW(EmulatedLinks(communicator, kModel, SteadyTime(), -1), InternalError);
  });
}

// The real clock. Lower bounds alone: a machine may be busy, but nothing is early.
TEST(EmulatedLinks, NothingIsEarly) {
  constexpr int kRounds = 5;
  RunThreadRanks(3, {}, [](Communicator& communicator) {
    EmulatedLinks links(communicator, kModel, SteadyTime());
    const Time begin = SteadyTime().Now();
    for (uint64_t i = 0; i < kRounds; ++i) {
      if (links.rank() == 0) links.Send(1, {7, i}, {Bytes(1000)});
      if (links.rank() == 1) {
        WorkPtr work = links.Recv(0, {7, i});
        work->Wait();
        EXPECT_TRUE(work->Done());
      }
    }
    // Its clock began after the sender's, perhaps; what it saw last was sent behind four others.
    if (links.rank() == 0) {
      auto last = links.Send(1, {7, kRounds}, {});
      EXPECT_FALSE(last->Done());
      last->Wait();
      EXPECT_GE(SteadyTime().Now() - begin, milliseconds(2 * kRounds + 1));
    } else if (links.rank() == 1) {
      links.Recv(0, {7, kRounds})->Wait();
    }
    const Time before = SteadyTime().Now();
    std::vector<WorkPtr> works;
    for (uint64_t i = 0; i < kRounds; ++i)
      works.push_back(links.AllReduceSum(links.world(), {8, i}, at::ones({250})));  // 3 + 1 ms each
    for (const WorkPtr& work : works) work->Wait();
    EXPECT_GE(SteadyTime().Now() - before, milliseconds(4 * kRounds));
  });
}

TEST(SteadyTime, SleepsAreNeverShort) {
  for (int i = 0; i < 20; ++i) {
    const Time until = SteadyTime().Now() + nanoseconds(100'000 + 77'777 * i);
    SteadyTime().SleepUntil(until);
    EXPECT_GE(SteadyTime().Now(), until);
  }
}

}  // namespace
}  // namespace penstock::comm
