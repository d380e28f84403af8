// Emulated ranks against the replay of the simulator, on the same schedule with the same prices.
#include "runtime/emulate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

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

}  // namespace
}  // namespace penstock::runtime
