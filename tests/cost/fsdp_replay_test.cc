// The closed forms of one sharded step against the general engine: the step as a schedule, replayed.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "cost/fsdp.h"
#include "cost/fsdp_step.h"
#include "step_schedule.h"

namespace penstock::cost {
namespace {

// Gathers and reductions are issued in the order of the runtime: the gather of a layer before the compute of the one
// before it, a reduction after its backward. `queues`: 2 with full duplex.
template <typename Time>
Time ReplayStep(int ranks, int layers, const FsdpLayerTimes<Time>& t, const FsdpOverlap& overlap) {
  StepSchedule<Time> s(ranks, layers, overlap.full_duplex ? 2 : 1);
  const int visits = 2 * layers, gathered = overlap.gathers_again ? visits : layers;
  std::vector<int> gathers, computes;
  const auto gather = [&](int v) {
    if (v >= gathered) return;
    const bool limited = overlap.gathers_again && v >= 2;  // whole parameters stay: no limit
    gathers.push_back(s.Collective(0, t.gather, limited ? std::vector{computes[v - 2]} : std::vector<int>{}));
  };
  gather(0);
  for (int v = 0; v < visits; ++v) {
    gather(v + 1);
    const std::vector<int> after = v < gathered ? std::vector{gathers[v]} : std::vector<int>{};
    if (v < layers) {
      computes.push_back(s.Forward(v, t.forward, after));
    } else {
      computes.push_back(s.Backward(visits - 1 - v, t.backward, after));
      s.Reduce(visits - 1 - v, overlap.full_duplex ? 1 : 0, t.reduce);
    }
  }
  return s.Replay().makespan;
}

std::vector<FsdpOverlap> Overlaps() { return {{true, false}, {true, true}, {false, false}}; }

// Exactly, over random sizes; max-form <= replay <= max-form + first gather + last reduction, and both ends are
// reached.
TEST(FsdpReplay, LayerwiseFormIsTheReplayAndMaxFormBoundsIt) {
  std::mt19937 random(20250403);
  std::uniform_int_distribution<int> ticks(0, 12), denominators(1, 6), layer_counts(1, 9), rank_counts(1, 3);
  for (const FsdpOverlap& overlap : Overlaps()) {
    int at_lower = 0, at_upper = 0;
    for (int i = 0; i < 1500; ++i) {
      const int layers = layer_counts(random);
      const Rational unit(1, denominators(random));
      const FsdpLayerTimes<Rational> t{Rational(ticks(random)) * unit, Rational(ticks(random)) * unit,
                                       Rational(ticks(random)) * unit, Rational(ticks(random)) * unit};
      const Rational replay = ReplayStep(rank_counts(random), layers, t, overlap);
      SCOPED_TRACE(fmt::format("layers {} gather {} forward {} backward {} reduce {}", layers, t.gather.ToString(),
                               t.forward.ToString(), t.backward.ToString(), t.reduce.ToString()));
      ASSERT_EQ(FsdpLayerwise(t, layers, overlap).ToString(), replay.ToString());
      const Rational form = FsdpMaxForm(t, layers, overlap);
      ASSERT_TRUE(form <= replay) << form.ToString() << " > " << replay.ToString();
      ASSERT_TRUE(replay <= form + t.gather + t.reduce) << replay.ToString();
      const bool ends = t.gather + t.reduce > Rational(0);
      at_lower += replay == form && ends;
      at_upper += replay == form + t.gather + t.reduce && ends;
    }
    EXPECT_GT(at_upper, 50);
    EXPECT_GT(at_lower, 10);
  }
}

// The estimate in seconds: its layerwise step is the replay of its own parts, its step between the bounds.
TEST(FsdpReplay, EstimatesAreTheReplayInSeconds) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> exponent(-1, 1);
  for (int i = 0; i < 200; ++i) {
    const FsdpModel model{.layers = 1 + i % 7, .hidden = 512};
    FsdpCluster cluster{.ranks = 8,
                        .shard_group = i % 2 == 0 ? 8 : 4,
                        .memory_bytes = 80e9,
                        .flops_per_second = 1e14,
                        .efficiency = 0.5,
                        .bytes_per_second = 1e9 * std::pow(10, exponent(random)),
                        .latency_seconds = i % 3 * 1e-5};
    FsdpChoice choice{.zero = 1 + i % 3, .kept = i % 5 / 4.0, .sequence = 256, .full_duplex = i % 4 == 3};
    choice.tokens = std::floor(2000 * std::pow(10, exponent(random)));
    if (choice.zero != 3) choice.full_duplex = false;
    const FsdpEstimate e = EstimateFsdp(model, cluster, choice);
    const double layers = model.layers;
    const double replay = ReplayStep<double>(
        2, model.layers, {e.gather / layers, e.forward / layers, e.backward / layers, e.reduce / layers},
        {.gathers_again = choice.zero == 3, .full_duplex = choice.full_duplex});
    ASSERT_TRUE(e.layerwise_step.has_value());
    EXPECT_NEAR(*e.layerwise_step / replay, 1, 1e-12);
    EXPECT_GE(e.step * (1 + 1e-12), replay);
    EXPECT_GE(replay * (1 + 1e-12), e.step - e.exposed_ends);
  }
}

}  // namespace
}  // namespace penstock::cost
