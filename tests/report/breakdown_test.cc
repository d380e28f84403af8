#include "report/breakdown.h"

#include <gtest/gtest.h>

#include "small_timeline.h"

namespace penstock::report {
namespace {

TEST(Breakdown, BubbleOfOneFOneBIsTheClosedForm) {
  const Breakdown b = Analyse(Replayed(PipelineOf("1f1b", 4, 1, 8)));
  EXPECT_EQ(b.steps, 1);
  EXPECT_DOUBLE_EQ(b.makespan, 33);
  EXPECT_NEAR(b.bubble_fraction, 3.0 / 11, 1e-12);
  for (const RankTimes& r : b.ranks) {
    EXPECT_DOUBLE_EQ(r.busy, 24);
    EXPECT_DOUBLE_EQ(r.total(), 33);
  }
  ASSERT_EQ(b.stages.size(), 4u);
  EXPECT_DOUBLE_EQ(b.stages[2].forward, 1);
  EXPECT_DOUBLE_EQ(b.stages[2].backward, 2);
  ASSERT_EQ(b.kinds.size(), 2u);
  EXPECT_EQ(b.kinds[0].name, "backward");
  EXPECT_EQ(b.kinds[0].count, 32);
  EXPECT_DOUBLE_EQ(b.kinds[0].seconds, 64);
}

TEST(Breakdown, WaitsAreWhatIsBlockedAndNotBusy) {
  schedule::Timeline t;
  t.num_ranks = 1;
  schedule::Event forward, recv;
  forward.start = 1;
  forward.end = 5;
  forward.waited = 2;  // works in [3, 5)
  recv.action.key.kind = schedule::Kind::recv;
  recv.action.stream = schedule::Stream::recv_channel;
  recv.start = 0;
  recv.end = 4;  // over [3, 4) the rank computes
  t.events = {recv, forward};
  schedule::Event update = forward;
  update.action.key.kind = schedule::Kind::update;
  update.start = 6;
  update.end = 8;
  update.waited = 0;
  t.events.push_back(update);
  const Breakdown b = Analyse(t);
  EXPECT_DOUBLE_EQ(b.ranks[0].busy, 4);
  EXPECT_DOUBLE_EQ(b.ranks[0].wait, 3);
  EXPECT_DOUBLE_EQ(b.ranks[0].other, 1);
  EXPECT_DOUBLE_EQ(b.makespan, 8);
}

TEST(Breakdown, StepsAddUp) {
  schedule::Timeline t = Replayed(PipelineOf("1f1b", 2, 1, 4));
  const double one = Analyse(t).makespan;
  const auto events = t.events;
  for (schedule::Event e : events) {
    e.step = 1;
    e.start += 1000;  // whatever lies between two steps is not of the schedule
    e.end += 1000;
    t.events.push_back(e);
  }
  EXPECT_DOUBLE_EQ(Analyse(t).makespan, 2 * one);
  EXPECT_EQ(Analyse(t).steps, 2);
}

TEST(Breakdown, PeakMemoryIsOfTheSum) {
  schedule::Timeline t;
  t.num_ranks = 2;
  t.memory = {{1, 0, BufferClass::activation, Tier::device, 10},
              {1, 2, BufferClass::activation, Tier::device, 3},
              {1, 1, BufferClass::gradient, Tier::device, 5},
              {1, 3, BufferClass::gradient, Tier::device, 9},
              {1, 1, BufferClass::rows, Tier::host, 1000}};
  const auto peaks = Analyse(t).memory;
  ASSERT_EQ(peaks.size(), 2u);
  EXPECT_EQ(peaks[0].bytes, 0);
  EXPECT_EQ(peaks[1].bytes, 15);
  EXPECT_EQ(peaks[1].by_class[static_cast<size_t>(BufferClass::activation)], 10);
}

// What an in-order replay does cannot be done earlier, with and without latency.
TEST(AvoidableWait, IsZeroInAReplay) {
  for (const auto& [builder, chunks] :
       std::vector<std::pair<std::string, int>>{{"1f1b", 1}, {"gpipe", 1}, {"zb-h1", 1}, {"interleaved-1f1b", 2}}) {
    const auto s = PipelineOf(builder, 4, chunks, 8);
    for (const Rational hop : {Rational(0), Rational(1, 4)}) {
      const auto waits = AvoidableWaits(Replayed(s, hop, chunks), s.graph, 1e-9);
      EXPECT_TRUE(waits.empty()) << builder << " hop " << hop.ToString() << ": " << waits[0].seconds;
    }
  }
}

// F0 of rank 1 starts after F1 of rank 0 although F0 was there (case C8).
TEST(AvoidableWait, FindsALateStart) {
  const auto s = PipelineOf("1f1b", 4, 1, 8);
  schedule::Timeline t = Replayed(s);
  for (schedule::Event& e : t.events)
    if (e.rank == 1 && e.index == 0) {
      e.start += 0.5;
      e.end += 0.5;
    }
  const auto waits = AvoidableWaits(t, s.graph, 1e-9);
  ASSERT_FALSE(waits.empty());
  EXPECT_EQ(ToString(t.events[waits[0].event].action.key), "forward 1.0");
  EXPECT_DOUBLE_EQ(waits[0].seconds, 0.5);
}

}  // namespace
}  // namespace penstock::report
