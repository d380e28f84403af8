// The in-order replay on whole schedules: streams, hazards, messages, collectives, and what it says when stuck.
#include "simulate/list_engine.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "schedule/operators.h"
#include "simulate/replay_of_builder.h"

namespace penstock::simulate {
namespace {

using schedule::Action;
using schedule::Builder;
using schedule::Kind;
using schedule::LowerSpec;
using schedule::PipelineShape;
using schedule::Schedule;
using schedule::UniformActionCosts;
using schedule::UniformCosts;

// Uniform compute; prices for messages and collectives, which uniform costs have for free.
class PricedMessages final : public schedule::ActionCosts<Rational> {
 public:
  PricedMessages(Rational send, Rational collective, Rational latency)
      : send_(send), collective_(collective), latency_(latency) {}
  Rational Duration(const Schedule& s, int rank, const Action& action) const override {
    if (action.key.kind == Kind::send) return send_;
    if (action.key.kind == Kind::collective) return collective_ * Rational(1 + rank);
    return UniformActionCosts({}).Duration(s, rank, action);
  }
  Rational Latency(const Schedule&, int, int, const Action&) const override { return latency_; }

 private:
  Rational send_, collective_, latency_;
};

class UniformSeconds final : public schedule::ActionCosts<double> {
 public:
  double Duration(const Schedule& s, int rank, const Action& action) const override {
    return UniformActionCosts({}).Duration(s, rank, action).ToDouble();
  }
  double Latency(const Schedule&, int, int, const Action&) const override { return 0.5; }
};

Schedule Whole(const std::string& builder, LowerSpec spec) { return Lower(Registry<Builder>::Find(builder), spec); }

template <typename Match>
int IndexOf(const Schedule& schedule, int rank, Match match) {
  for (size_t i = 0; i < schedule.ranks[rank].size(); ++i)
    if (match(schedule.ranks[rank][i])) return static_cast<int>(i);
  ADD_FAILURE() << "no such action on rank " << rank;
  return 0;
}

std::string ErrorOf(const Schedule& schedule) {
  try {
    ReplayInOrder<Rational>(schedule, UniformActionCosts({}));
  } catch (const UserError& error) {
    return error.what();
  }
  return "finished";
}

// Messages, reduction, check and update derived by the passes and free of cost change no time: neither without latency
// nor with one, nor with several replicas.
TEST(ListEngine, WholeScheduleTakesTheTimeOfItsCompute) {
  int compared = 0;
  for (const auto& [name, builder] : Registry<Builder>::All())
    for (const int p : {1, 2, 3, 4})
      for (const int m : {1, 2, 5, 8})
        for (const std::string& placement : builder.placements)
          for (const Rational& hop : {Rational(0), Rational(1, 2), Rational(3)}) {
            const int v = placement == "linear" ? 1 : builder.default_chunks;
            const UniformCosts costs{1, Rational(3, 2), 1, hop};
            LowerSpec spec = SpecOf({p, v, m, placement});
            const auto compute = ReplayInOrder<Rational>(AssembleCompute(builder, spec), UniformActionCosts(costs));
            const auto whole = ReplayInOrder<Rational>(Lower(builder, spec), UniformActionCosts(costs));
            EXPECT_EQ(whole.makespan.ToString(), compute.makespan.ToString()) << name << p << m << hop.ToString();
            EXPECT_EQ(whole.max_span.ToString(), compute.max_span.ToString()) << name << p << m << hop.ToString();
            EXPECT_EQ(whole.peak_micro_batches, compute.peak_micro_batches) << name;
            spec.data = 2;
            spec.micro_batches = 2 * m;
            const auto replicas = ReplayInOrder<Rational>(Lower(builder, spec), UniformActionCosts(costs));
            EXPECT_EQ(replicas.makespan.ToString(), compute.makespan.ToString()) << name << p << m << hop.ToString();
            ++compared;
          }
  EXPECT_GT(compared, 400);
}

// A backward takes a forward longer, (M + P - 1)(2F + B), but recomputation does not wait for the gradient: on all
// ranks but the last the first one runs in the wait of the warm-up.
TEST(ListEngine, RecomputationStartsBeforeTheGradientIsThere) {
  LowerSpec spec = SpecOf({4, 1, 8, {}});
  spec.recompute.assign(4, true);
  const auto replay = ReplayInOrder<Rational>(Whole("1f1b", spec), UniformActionCosts({}));
  EXPECT_EQ(replay.makespan, Rational((8 + 3) * 4 - 3));
}

// cases.md C8: the first forward of rank 1 starts after the first forward of rank 0 and its transfer.
TEST(ListEngine, WarmUpIsAsFastAsTheDependenciesAllow) {
  const Schedule schedule = Whole("1f1b", SpecOf({4, 1, 8, {}}));
  const auto replay = ReplayInOrder<Rational>(schedule, UniformActionCosts({1, 1, 1, Rational(1, 4)}));
  const int first = IndexOf(schedule, 1, [](const Action& a) { return a.key.kind == Kind::forward; });
  EXPECT_EQ(replay.times[1][first].start, Rational(5, 4));
}

// cases.md C9: the bubble of 1F1B at equal stages.
TEST(ListEngine, BubbleFractionOfOneForwardOneBackward) {
  EXPECT_EQ(ReplayBuilder("1f1b", {4, 1, 8, {}}, {}).bubble_fraction, Rational(3, 11));
}

// Sends keep their channel busy and wait for each other; compute does not wait for them.
TEST(ListEngine, ChannelsAreInOrderAndDoNotBlockCompute) {
  const Schedule schedule = Whole("gpipe", SpecOf({2, 1, 3, {}}));
  const auto replay = ReplayInOrder<Rational>(schedule, PricedMessages(2, 0, 1));
  std::vector<Rational> sends, forwards;
  for (size_t i = 0; i < schedule.ranks[0].size(); ++i) {
    if (schedule.ranks[0][i].key.kind == Kind::send) sends.push_back(replay.times[0][i].start);
    if (schedule.ranks[0][i].key.kind == Kind::forward) forwards.push_back(replay.times[0][i].start);
  }
  EXPECT_EQ(forwards, (std::vector<Rational>{0, 1, 2}));
  EXPECT_EQ(sends, (std::vector<Rational>{1, 3, 5}));
  const int received =
      IndexOf(schedule, 1, [](const Action& a) { return a.key.kind == Kind::recv && a.key.micro_batch == 2; });
  EXPECT_EQ(replay.times[1][received].end, Rational(8));  // sent from 5 on, busy 2, latency 1
}

// A collective starts for the member that comes last and ends for all at once, by its longest price.
TEST(ListEngine, CollectivesMeet) {
  LowerSpec spec = SpecOf({1, 1, 3, {}});
  spec.data = 2;  // micro-batches 0, 1 on rank 0 and 2 on rank 1
  const Schedule schedule = Whole("gpipe", spec);
  const auto replay = ReplayInOrder<Rational>(schedule, PricedMessages(0, 5, 0));
  const auto is_reduce = [](const Action& a) {
    return a.key.kind == Kind::collective && schedule::OpName(a.key.op) == "reduce";
  };
  const auto& t0 = replay.times[0][IndexOf(schedule, 0, is_reduce)];
  const auto& t1 = replay.times[1][IndexOf(schedule, 1, is_reduce)];
  EXPECT_EQ(t0.start, Rational(6));
  EXPECT_EQ(t1.start, Rational(3));
  EXPECT_EQ(t0.end, Rational(16));
  EXPECT_EQ(t1.end, Rational(16));
}

TEST(ListEngine, ExplicitEdgesHold) {
  Schedule schedule = ComputeOnly(Registry<Builder>::Find("gpipe"), {2, 1, 1, {}});
  // The first forward of rank 0 waits for a recompute that rank 1 does first.
  Action extra = schedule.ranks[1][0];
  extra.key.kind = Kind::task;
  extra.key.op = schedule::FindOp(schedule::ops::kNorm);
  schedule.ranks[1].insert(schedule.ranks[1].begin(), extra);
  schedule.edges.push_back({1, 0});
  schedule.ranks[0][0].extra_edges = {0, 1};
  const auto replay = ReplayInOrder<Rational>(schedule, UniformActionCosts({1, 1, 1, Rational(7)}));
  EXPECT_EQ(replay.times[0][0].start, Rational(7));
}

TEST(ListEngine, NamesWhatIsBlocked) {
  Schedule schedule = ComputeOnly(Registry<Builder>::Find("1f1b"), {2, 1, 2, {}});
  std::swap(schedule.ranks[0][1], schedule.ranks[0][2]);  // F0 B0 F1 B1 on rank 0 still finishes
  EXPECT_EQ(ErrorOf(schedule), "finished");
  std::swap(schedule.ranks[1][0], schedule.ranks[1][1]);
  EXPECT_EQ(ErrorOf(schedule),
            "schedule '1f1b' does not finish: 7 of 8 actions never end\n"
            "  rank 0: backward 0.0 waits for backward 1.0 on rank 1\n"
            "  rank 1: backward 1.0 waits for forward 1.0 on rank 1");
}

TEST(ListEngine, NamesWhatIsMissing) {
  Schedule schedule = ComputeOnly(Registry<Builder>::Find("gpipe"), {2, 1, 1, {}});
  schedule.ranks[0].erase(schedule.ranks[0].begin());
  EXPECT_NE(ErrorOf(schedule).find("rank 1: forward 1.0 waits for forward 0.0, which no rank runs"), std::string::npos)
      << ErrorOf(schedule);

  Schedule sent = Whole("gpipe", SpecOf({2, 1, 1, {}}));
  sent.ranks[0].erase(sent.ranks[0].begin() +
                      IndexOf(sent, 0, [](const Action& a) { return a.key.kind == Kind::send; }));
  EXPECT_NE(ErrorOf(sent).find("waits for its send, which rank 0 does not issue"), std::string::npos) << ErrorOf(sent);

  Schedule unreceived = Whole("gpipe", SpecOf({2, 1, 1, {}}));
  auto& list = unreceived.ranks[1];
  list.erase(list.begin() + IndexOf(unreceived, 1, [](const Action& a) { return a.key.kind == Kind::recv; }));
  EXPECT_NE(ErrorOf(unreceived).find("has no receive on rank 1"), std::string::npos) << ErrorOf(unreceived);
}

TEST(ListEngine, RefusesWhatDoesNotMatch) {
  Schedule swapped = Whole("gpipe", SpecOf({2, 1, 2, {}}));
  for (Action& a : swapped.ranks[1])
    if (a.key.kind == Kind::recv) a.key.micro_batch = 1 - a.key.micro_batch;
  EXPECT_NE(ErrorOf(swapped).find("channel 0 -> 1: message 0 is sent as"), std::string::npos) << ErrorOf(swapped);

  LowerSpec spec = SpecOf({1, 2, 2, "block"});
  spec.data = 2;
  Schedule crossed = Whole("gpipe", spec);
  const auto reduce_of = [](int unit) {
    return [unit](const Action& a) { return a.key.kind == Kind::collective && a.key.unit.stage == unit; };
  };
  std::swap(crossed.ranks[1][IndexOf(crossed, 1, reduce_of(0))], crossed.ranks[1][IndexOf(crossed, 1, reduce_of(1))]);
  EXPECT_NE(ErrorOf(crossed).find("group"), std::string::npos) << ErrorOf(crossed);

  Schedule twice = ComputeOnly(Registry<Builder>::Find("gpipe"), {1, 1, 1, {}});
  twice.ranks[0].push_back(twice.ranks[0][0]);
  EXPECT_NE(ErrorOf(twice).find("forward 0.0 appears twice"), std::string::npos) << ErrorOf(twice);
}

// cases.md C6: two ranks that meet in two groups in opposite orders.
TEST(ListEngine, CollectivesInOppositeOrdersAreNamed) {
  Schedule schedule = ComputeOnly(Registry<Builder>::Find("gpipe"), {2, 1, 1, {}});
  schedule.groups = {{0, 1}, {0, 1}};
  for (auto& list : schedule.ranks) list.clear();
  for (int rank = 0; rank < 2; ++rank)
    for (int k = 0; k < 2; ++k) {
      Action a;
      a.key.kind = Kind::collective;
      a.key.op = schedule::FindOp(schedule::ops::kGatherStatistics);
      a.peer_or_group = k ^ rank;
      a.stream = schedule::Stream::group_queue;
      schedule.ranks[rank].push_back(a);
    }
  // Queues of two groups do not wait for each other, but what the collectives write does.
  EXPECT_NE(ErrorOf(schedule).find("does not finish: "), std::string::npos) << ErrorOf(schedule);
}

TEST(ListEngine, TimelineHasEveryActionOnce) {
  const Schedule schedule = Whole("zb-v", SpecOf({4, 2, 5, {}}));
  const auto replay = ReplayInOrder<double>(schedule, UniformSeconds());
  const auto timeline = ToTimeline(schedule, replay, "zb-v");
  EXPECT_EQ(timeline.title, "zb-v");
  EXPECT_EQ(timeline.num_ranks, 4);
  ASSERT_EQ(static_cast<int64_t>(timeline.events.size()), schedule.num_actions());
  double last = 0;
  for (size_t i = 0; i < timeline.events.size(); ++i) {
    const auto& event = timeline.events[i];
    EXPECT_EQ(event.action, schedule.at({event.rank, event.index}));
    EXPECT_LE(event.start, event.end);
    EXPECT_EQ(event.provenance, schedule::Provenance::predicted);
    last = std::max(last, event.end);
    const bool follows = i > 0 && timeline.events[i - 1].rank == event.rank;
    EXPECT_TRUE(!follows || timeline.events[i - 1].start <= event.start);
  }
  EXPECT_EQ(last, replay.makespan);
  const auto exact = ReplayInOrder<Rational>(schedule, UniformActionCosts({1, 1, 1, Rational(1, 2)}));
  EXPECT_EQ(replay.makespan, exact.makespan.ToDouble());
  EXPECT_EQ(replay.max_span, exact.max_span.ToDouble());
}

TEST(ListEngine, EmptyScheduleTakesNoTime) {
  const auto replay = ReplayInOrder<Rational>(Schedule{}, UniformActionCosts({}));
  EXPECT_EQ(replay.makespan, Rational(0));
  EXPECT_EQ(replay.actions, 0);
}

}  // namespace
}  // namespace penstock::simulate
