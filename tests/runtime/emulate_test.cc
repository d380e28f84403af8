// Emulated ranks against the replay of the simulator, on the same schedule with the same prices.
#include "runtime/emulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "schedule/builder.h"
#include "schedule/lower.h"
#include "schedule/operators.h"
#include "simulate/list_engine.h"

namespace penstock::runtime {
namespace {

using schedule::Action;
using schedule::Builder;
using schedule::Kind;
using schedule::LowerSpec;
using schedule::Schedule;
using schedule::UniformCosts;
using schedule::UniformSeconds;

LowerSpec SpecOf(const Builder& builder, int ranks, int micro_batches) {
  LowerSpec spec;
  spec.pipeline = ranks;
  spec.chunks = builder.default_chunks;
  spec.micro_batches = micro_batches;
  return spec;
}

// Prices for everything.
class AllPriced final : public schedule::ActionCosts<double> {
 public:
  AllPriced(double send, double collective, double latency) : send_(send), collective_(collective), latency_(latency) {}
  double Duration(const Schedule& s, int rank, const Action& action) const override {
    switch (action.key.kind) {
      case Kind::send:
        return send_;
      case Kind::collective:
        return collective_ * (1 + 0.25 * rank);
      case Kind::recv:
        return 0;
      case Kind::update:
      case Kind::check:
      case Kind::task:
        return 0.125;
      default:
        return UniformSeconds({1, Rational(3, 2), Rational(3, 4)}).Duration(s, rank, action);
    }
  }
  double Latency(const Schedule&, int, int, const Action&) const override { return latency_; }

 private:
  double send_, collective_, latency_;
};

// Every action ends when the replay says. Times on ideal clocks: differences would be differences of rules.
void ExpectReplay(const Schedule& s, const schedule::ActionCosts<double>& costs, const std::string& what) {
  const auto replay = simulate::ReplayInOrder<double>(s, costs);
  const schedule::Timeline timeline = EmulateSteps(s, costs, {.virtual_time = true});
  ASSERT_EQ(static_cast<int64_t>(timeline.events.size()), s.num_actions()) << what;
  double worst = 0;
  std::string worst_action;
  for (const schedule::Event& event : timeline.events) {
    EXPECT_EQ(event.provenance, schedule::Provenance::emulated);
    EXPECT_EQ(event.action, s.at({event.rank, event.index}));
    double expected = replay.times[event.rank][event.index].end;
    // What arrived before it was asked for ends when the rank asks; the replay's receives are asked for ahead.
    if (event.action.key.kind == Kind::recv) expected = std::max(expected, event.start + event.waited);
    const double off = std::abs(event.end - expected);
    if (off <= worst) continue;
    worst = off;
    worst_action = fmt::format("rank {}: {} ends at {}, by the replay at {}", event.rank, ToString(event.action),
                               event.end, expected);
  }
  EXPECT_LT(worst, 1e-4) << what << ": " << worst_action;
  EXPECT_NEAR(MakespanOf(timeline), replay.makespan, 1e-4) << what;
}

TEST(Emulate, IdealClocksGiveTheReplayOfEveryBuilder) {
  int compared = 0;
  for (const auto& [name, builder] : Registry<Builder>::All())
    for (const int ranks : {1, 2, 4, 8})
      for (const Rational& hop : {Rational(0), Rational(1, 4), Rational(3)}) {
        const UniformSeconds costs(UniformCosts{1, Rational(3, 2), 1, hop});
        ExpectReplay(Lower(builder, SpecOf(builder, ranks, 2 * ranks)), costs, fmt::format("{} p{}", name, ranks));
        ++compared;
      }
  EXPECT_GE(compared, 12 * 8);
}

TEST(Emulate, IdealClocksWithPricesForMessagesAndUpdates) {
  for (const auto& [name, builder] : Registry<Builder>::All())
    ExpectReplay(Lower(builder, SpecOf(builder, 4, 8)), AllPriced(0.75, 0.5, 0.25), name);
}

// Replicas, shared parameters, recomputation.
TEST(Emulate, IdealClocksOnMeshes) {
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    for (const int data : {1, 2}) {
      LowerSpec spec = SpecOf(builder, 4, 8 * data);
      spec.data = data;
      const int stages = 4 * spec.chunks;
      if (data == 1) spec.shared_parameters.push_back({0, static_cast<uint16_t>(stages - 1)});
      spec.recompute.assign(stages, true);
      ExpectReplay(Lower(builder, spec), AllPriced(0.75, 4, 0.25), fmt::format("{} data {}", name, data));
    }
  }
}

// Where the executor is later than its streams allow: it posts a collective when the collective's hazards are over,
// and waits for that on the rank's thread, so that work that comes after it in the list (here: the norms after the sum
// over the uses of a shared parameter, which waits for a reduction) begins later than by the rules. The step as a whole
// takes no longer.
TEST(Emulate, CollectivesThatWaitForCollectivesHoldUpTheThread) {
  LowerSpec spec = SpecOf(Registry<Builder>::Find("1f1b"), 4, 16);
  spec.data = 2;
  spec.shared_parameters.push_back({0, 3});
  const Schedule s = Lower(Registry<Builder>::Find("1f1b"), spec);
  const AllPriced costs(0.75, 4, 0.25);
  const auto replay = simulate::ReplayInOrder<double>(s, costs);
  const schedule::Timeline timeline = EmulateSteps(s, costs, {.virtual_time = true});
  EXPECT_NEAR(MakespanOf(timeline), replay.makespan, 1e-4);
  int late = 0;
  for (const schedule::Event& event : timeline.events) {
    const double off = event.end - replay.times[event.rank][event.index].end;
    EXPECT_GT(off, -1e-4) << ToString(event.action);
    if (off > 1e-4 && event.action.key.kind != Kind::recv) {
      EXPECT_EQ(event.action.key.kind, Kind::task) << ToString(event.action);
      ++late;
    }
  }
  EXPECT_GT(late, 0) << "the executor has become as free as the rules: compare everything in IdealClocksOnMeshes";
}

TEST(Emulate, EdgesBetweenRanksAreMessages) {
  Schedule s = Lower(Registry<Builder>::Find("gpipe"), SpecOf(Registry<Builder>::Find("gpipe"), 2, 2));
  const auto last = [&](int rank) {
    for (size_t i = s.ranks[rank].size(); i-- > 0;)
      if (s.ranks[rank][i].key.kind == Kind::update) return static_cast<int32_t>(i);
    throw InternalError("no update");
  };
  s.edges.push_back({0, last(0)});
  s.ranks[1][last(1)].extra_edges = {0, 1};
  ExpectReplay(s, AllPriced(0.5, 1, 0.25), "edge");
  // Given long before it is needed.
  s.edges[0] = {0, 0};
  ExpectReplay(s, AllPriced(0.5, 1, 0.25), "early edge");
}

// 1 ms a byte and hop; reductions 5 ms a member.
class SlowLinks final : public LinkModel {
 public:
  LinkSeconds Message(int, int, int64_t bytes) const override { return {1e-3, 1e-3 * static_cast<double>(bytes)}; }
  double Collective(const std::vector<int>& ranks, std::string_view, int64_t) const override {
    return 5e-3 * static_cast<double>(ranks.size());
  }
};

TEST(Emulate, LinksPriceByDeclaredBytes) {
  LowerSpec spec = SpecOf(Registry<Builder>::Find("gpipe"), 2, 1);
  spec.boundary_bytes = {20};
  const Schedule s = Lower(Registry<Builder>::Find("gpipe"), spec);
  const SlowLinks links;
  const UniformSeconds costs(UniformCosts{Rational(1, 10), Rational(1, 10), Rational(1, 10), 0});
  const schedule::Timeline timeline = EmulateSteps(s, costs, {.time_scale = 7, .links = &links, .virtual_time = true});
  // F0, 20 ms + 1 ms, F1, B1, 20 ms + 1 ms, B0; then the statistics, 10 ms.
  EXPECT_NEAR(MakespanOf(timeline), 0.1 + 0.021 + 0.1 + 0.2 + 0.021 + 0.2 + 0.01, 1e-7);
  for (const schedule::Event& event : timeline.events)
    EXPECT_EQ(event.bytes, event.action.key.kind == Kind::send || event.action.key.kind == Kind::recv ? 20 : 0);
}

TEST(Emulate, SerialAndSeveralSteps) {
  const Schedule s = Lower(Registry<Builder>::Find("1f1b"), SpecOf(Registry<Builder>::Find("1f1b"), 2, 4));
  const UniformSeconds costs(UniformCosts{1, 1, 1, Rational(1, 2)});
  const schedule::Timeline timeline = EmulateSteps(s, costs, {.steps = 3, .virtual_time = true});
  EXPECT_EQ(static_cast<int64_t>(timeline.events.size()), 3 * s.num_actions());
  const double makespan = MakespanOf(timeline, 0);
  EXPECT_NEAR(MakespanOf(timeline, 2), makespan, 1e-4);
  EXPECT_EQ(MakespanOf(timeline, 3), 0);
  // Each receive is waited for when it is posted.
  EXPECT_GT(MakespanOf(EmulateSteps(s, costs, {.serial = true, .virtual_time = true})), makespan + 0.4);
}

// On the real clock: never faster than the replay; the upper bound is loose because machines are busy
// (bench/emulated_bench.cc has the close one).
TEST(Emulate, RealClocksKeepToTheReplay) {
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    for (const int ranks : {4, 8}) {
      if (ranks == 8 && name != "1f1b" && name != "zb-v") continue;
      const Schedule s = Lower(builder, SpecOf(builder, ranks, ranks));
      const UniformSeconds costs(UniformCosts{1, 1, 1, Rational(1, 2)});
      const double simulated = simulate::ReplayInOrder<double>(s, costs).makespan;
      double best = 1e9;
      for (int attempt = 0; attempt < 3 && best > 1.5; ++attempt) {
        const double emulated = MakespanOf(EmulateSteps(s, costs, {.shortest = 3e-3}));
        EXPECT_GE(emulated, simulated) << name;
        best = std::min(best, emulated / simulated);
      }
      EXPECT_LE(best, 1.5) << name << " on " << ranks << " ranks";
    }
  }
}

// A schedule that hangs ends at the deadline, in the schedule's words.
TEST(Emulate, DeadlineNamesTheMessage) {
  Schedule s = Lower(Registry<Builder>::Find("gpipe"), SpecOf(Registry<Builder>::Find("gpipe"), 2, 2));
  auto& list = s.ranks[0];
  // Rank 0 waits for a gradient before it has sent the value that the gradient is of.
  const auto at = [&](Kind kind) {
    return std::find_if(list.begin(), list.end(), [&](const Action& a) { return a.key.kind == kind; });
  };
  std::rotate(at(Kind::send), at(Kind::send) + 1, list.end());
  try {
    EmulateSteps(s, UniformSeconds(UniformCosts{}), {.shortest = 1e-3, .deadline = std::chrono::milliseconds(300)});
    FAIL() << "it ended";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("activation 0."), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace penstock::runtime
