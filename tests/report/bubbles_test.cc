// Bubbles by cause, critical path.
#include "report/bubbles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "report/critical_path.h"
#include "sample.h"

namespace penstock::report {
namespace {

using schedule::Event;
using schedule::Kind;
using schedule::Timeline;

Event Compute(int32_t rank, int32_t index, Kind kind, int stage, int micro_batch, double start, double end,
              double waited = 0) {
  Event e;
  e.action.key.kind = kind;
  e.action.key.unit.stage = static_cast<uint16_t>(stage);
  e.action.key.micro_batch = micro_batch;
  e.action.stream = schedule::DefaultStream(kind);
  e.rank = rank;
  e.index = index;
  e.start = start;
  e.end = end;
  e.waited = waited;
  return e;
}

double Of(const Bubbles& b, int rank, BubbleCause cause) { return b.ranks[rank].by_cause[static_cast<size_t>(cause)]; }

void ExpectSums(const Timeline& t, const Bubbles& b) {
  for (const RankBubbles& r : b.ranks) EXPECT_NEAR(r.busy + r.total(), b.makespan, 1e-9 * b.makespan);
  double spans = 0, causes = 0;
  for (const Bubble& s : b.spans) {
    EXPECT_GT(s.end, s.start);
    spans += s.seconds();
  }
  for (const RankBubbles& r : b.ranks) causes += r.total();
  EXPECT_NEAR(spans, causes, 1e-9 * b.makespan);
  EXPECT_EQ(b.ranks.size(), static_cast<size_t>(t.num_ranks));
}

void ExpectTiles(const Timeline& t, const schedule::StageGraph& graph, int32_t step) {
  const auto path = CriticalPath(t, step, graph);
  ASSERT_FALSE(path.empty());
  double start = INFINITY, end = -INFINITY;
  for (const Event& e : t.events)
    if (e.step == step) {
      start = std::min(start, e.start);
      end = std::max(end, e.end);
    }
  EXPECT_EQ(path.front().start, start);
  EXPECT_EQ(path.back().end, end);
  for (size_t i = 1; i < path.size(); ++i) EXPECT_EQ(path[i - 1].end, path[i].start);
}

// GPipe, two ranks, two micro-batches, forward 1, backward 2, a message 0.25:
//   rank 0  F0 [0,1) F1 [1,2)                       B0 [5.5,7.5) B1 [7.5,9.5)
//   rank 1        F0 [1.25,2.25) F1 [2.25,3.25) B0 [3.25,5.25) B1 [5.25,7.25)
TEST(Bubbles, OfGPipeByHand) {
  const auto s = PipelineOf("gpipe", 2, 1, 2);
  const Timeline t = Replayed(s, Rational(1, 4));
  const Bubbles b = FindBubbles(t, s.graph);
  ExpectSums(t, b);
  EXPECT_DOUBLE_EQ(b.makespan, 9.5);
  EXPECT_DOUBLE_EQ(b.ranks[0].busy, 6);
  // From 2 to 5.25 rank 1 computes what rank 0 needs; then the message is on its way.
  EXPECT_DOUBLE_EQ(Of(b, 0, BubbleCause::imbalance), 3.25);
  EXPECT_DOUBLE_EQ(Of(b, 0, BubbleCause::message), 0.25);
  EXPECT_DOUBLE_EQ(b.ranks[0].by_peer.at(1), 3.5);
  EXPECT_DOUBLE_EQ(b.ranks[0].total(), 3.5);
  EXPECT_DOUBLE_EQ(Of(b, 1, BubbleCause::warm_up), 1.25);
  EXPECT_DOUBLE_EQ(Of(b, 1, BubbleCause::drain), 2.25);
  EXPECT_DOUBLE_EQ(b.ranks[1].total(), 3.5);
  EXPECT_DOUBLE_EQ(b.fraction(), 7.0 / 19);
}

TEST(Bubbles, TheCriticalPathOfGPipeByHand) {
  const auto s = PipelineOf("gpipe", 2, 1, 2);
  const Timeline t = Replayed(s, Rational(1, 4));
  ExpectTiles(t, s.graph, 0);
  const auto path = CriticalPath(t, 0, s.graph);
  std::string text;
  for (const PathPiece& p : path)
    text += p.kind == PathKind::work ? ToString(t.events[p.event].action.key) + "; " : std::string(Name(p.kind)) + "; ";
  EXPECT_EQ(text,
            "forward 0.0; message; forward 1.0; forward 1.1; backward 1.0; message; backward 0.0; backward 0.1; ");
  const auto shares = Shares(t, path);
  EXPECT_EQ(shares[0].name, "backward");
  EXPECT_DOUBLE_EQ(shares[0].seconds, 4);
}

// Measured: rank 0 is blocked from 1 to 4 for the gradient that rank 1 ended at 3.5, then its host sleeps until 4.5.
TEST(Bubbles, OfMeasuredWaitsOnlyTheBlockedPartHasACause) {
  Timeline t;
  t.num_ranks = 2;
  t.events = {Compute(0, 0, Kind::forward, 0, 0, 0, 1), Compute(0, 1, Kind::backward, 0, 0, 1, 6, 3),
              Compute(1, 0, Kind::forward, 1, 0, 0.5, 2, 0.75), Compute(1, 1, Kind::backward, 1, 0, 2, 3.5)};
  t.events.push_back(Compute(0, 2, Kind::update, 0, -1, 6.5, 7));
  const auto graph = schedule::StageGraph::Chain(2);
  const Bubbles b = FindBubbles(t, graph);
  ExpectSums(t, b);
  ExpectTiles(t, graph, 0);
  EXPECT_DOUBLE_EQ(Of(b, 0, BubbleCause::imbalance), 2.5);
  EXPECT_DOUBLE_EQ(Of(b, 0, BubbleCause::message), 0.5);
  EXPECT_DOUBLE_EQ(Of(b, 0, BubbleCause::host), 0.5);  // before the update, when all layers are over
  EXPECT_DOUBLE_EQ(Of(b, 1, BubbleCause::warm_up), 1.25);
  EXPECT_DOUBLE_EQ(Of(b, 1, BubbleCause::drain), 3.5);
}

// Rank 1 computes until 4 what rank 0 sent at 1: asking for it takes a moment, and the path stays on rank 1.
TEST(CriticalPath, AMessageThatLayThereDoesNotLeadToItsSender) {
  Timeline t;
  t.num_ranks = 2;
  t.events = {Compute(0, 0, Kind::forward, 0, 0, 0, 1), Compute(0, 1, Kind::forward, 0, 1, 1, 2),
              Compute(1, 0, Kind::forward, 1, 0, 0, 5, 1.5), Compute(1, 1, Kind::forward, 1, 1, 5, 8, 0.01)};
  const auto graph = schedule::StageGraph::Chain(2);
  ExpectTiles(t, graph, 0);
  const auto path = CriticalPath(t, 0, graph);
  ASSERT_EQ(path.size(), 5u);
  EXPECT_EQ(path[0].rank, 0);  // forward 0.0, its message, forward 1.0, the moment, forward 1.1
  EXPECT_EQ(path[1].kind, PathKind::message);
  EXPECT_DOUBLE_EQ(path[1].seconds(), 0.5);
  EXPECT_EQ(path[2].event, 2);
  EXPECT_NEAR(path[3].seconds(), 0.01, 1e-12);
  EXPECT_EQ(path[3].event, -1);
}

// Two replicas of one stage: rank 0 is done at 2, rank 1 joins the reduction at 3, which is over at 3.5.
TEST(Bubbles, AReplicaThatIsLateIsImbalanceAndThenTheCollectiveTakesItsTime) {
  Timeline t;
  t.num_ranks = 2;
  for (const int32_t r : {0, 1}) {
    const double done = r == 0 ? 2 : 3;
    t.events.push_back(Compute(r, 0, Kind::backward, 0, r, 0, done));
    Event reduce = Compute(r, 1, Kind::collective, 0, -1, done, 3.5);
    reduce.action.key.op = schedule::FindOp(schedule::ops::kReduce);
    reduce.action.peer_or_group = 0;
    t.events.push_back(reduce);
    t.events.push_back(Compute(r, 2, Kind::update, 0, -1, 3.5, 4));
  }
  const auto graph = schedule::StageGraph::Chain(1);
  const Bubbles b = FindBubbles(t, graph);
  ExpectSums(t, b);
  EXPECT_DOUBLE_EQ(Of(b, 0, BubbleCause::imbalance), 1);
  EXPECT_DOUBLE_EQ(b.ranks[0].by_peer.at(1), 1);
  EXPECT_DOUBLE_EQ(Of(b, 0, BubbleCause::collective), 0.5);
  EXPECT_DOUBLE_EQ(Of(b, 1, BubbleCause::collective), 0.5);
  EXPECT_DOUBLE_EQ(b.ranks[1].total(), 0.5);
  ExpectTiles(t, graph, 0);
  const auto path = CriticalPath(t, 0, graph);
  ASSERT_EQ(path.size(), 3u);
  EXPECT_EQ(path[0].rank, 1);
  EXPECT_EQ(path[1].kind, PathKind::collective);
}

TEST(Bubbles, CopiesAreOffload) {
  Timeline t;
  t.num_ranks = 1;
  t.events = {Compute(0, 0, Kind::forward, 0, 0, 0, 1), Compute(0, 1, Kind::copy, 0, 0, 1, 2),
              Compute(0, 2, Kind::backward, 0, 0, 2, 3)};
  const Bubbles b = FindBubbles(t, schedule::StageGraph::Chain(1));
  EXPECT_DOUBLE_EQ(Of(b, 0, BubbleCause::offload), 1);
  ExpectSums(t, b);
}

TEST(Bubbles, OfEverySchedule) {
  for (const auto& [builder, chunks] :
       std::vector<std::pair<std::string, int>>{{"1f1b", 1}, {"gpipe", 1}, {"zb-h1", 1}, {"interleaved-1f1b", 2}}) {
    const auto s = PipelineOf(builder, 4, chunks, 8);
    for (const Rational hop : {Rational(0), Rational(1, 4)}) {
      const Timeline t = Replayed(s, hop, chunks);
      const Bubbles b = FindBubbles(t, s.graph);
      ExpectSums(t, b);
      ExpectTiles(t, s.graph, 0);
      for (int r = 0; r < 4; ++r) EXPECT_DOUBLE_EQ(Of(b, r, BubbleCause::host), 0) << builder << " rank " << r;
    }
  }
}

// (p - 1) / (m + p - 1) of equal stages, here by its causes (case C9: 27.3 %).
TEST(Bubbles, Of1F1BIsTheClosedForm) {
  const auto s = PipelineOf("1f1b", 4, 1, 8);
  EXPECT_NEAR(FindBubbles(Replayed(s), s.graph).fraction(), 3.0 / 11, 1e-12);
}

// Anything at all: overlaps, waits, streams, keys that do not fit together.
TEST(Bubbles, RandomTimelinesAddUp) {
  std::mt19937_64 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 300; ++round) {
    Timeline t;
    t.num_ranks = 1 + below(5);
    const int events = 1 + below(80);
    for (int i = 0; i < events; ++i) {
      const auto kind = static_cast<Kind>(below(schedule::kKindCount));
      const double start = below(50) * 0.5, length = below(9) * 0.25;
      Event e = Compute(below(t.num_ranks), i, kind, below(4), below(4) - 1, start, start + length,
                        below(3) == 0 ? length * 0.5 : 0);
      if (kind == Kind::send || kind == Kind::recv)
        e.action.key.op = schedule::FindOp(below(2) ? schedule::ops::kActivation : schedule::ops::kGradient);
      if (kind == Kind::collective) e.action.key.op = schedule::FindOp(schedule::ops::kReduce);
      e.action.peer_or_group = below(t.num_ranks);
      e.action.key.part = static_cast<int16_t>(below(3));
      e.step = below(2);
      t.events.push_back(e);
    }
    const auto graph = schedule::StageGraph::Chain(4);
    const Bubbles b = FindBubbles(t, graph);
    ExpectSums(t, b);
    for (const Event& e : t.events) {
      bool empty = true;
      for (const Event& other : t.events)
        empty = empty && (other.step != e.step || (other.start == e.start && other.end == e.start));
      if (!empty) ExpectTiles(t, graph, e.step);
    }
  }
}

TEST(Bubbles, OfNothingAreNone) {
  const Bubbles b = FindBubbles({}, schedule::StageGraph::Chain(1));
  EXPECT_EQ(b.steps, 0);
  EXPECT_EQ(b.fraction(), 0);
  EXPECT_TRUE(CriticalPath({}, 0, schedule::StageGraph::Chain(1)).empty());
}

}  // namespace
}  // namespace penstock::report
