// MAD-Max's trace against the general engine, and against tables made by hand.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error.h"
#include "cost/fsdp_step.h"
#include "cost/mad_max_step.h"
#include "step_schedule.h"

namespace penstock::cost {
namespace {

using Layer = MadMaxLayerTimes<Rational>;

// "name start-end" of every operation, in the order placed.
std::vector<std::string> Table(const TwoStreamTrace<Rational>& trace) {
  std::vector<std::string> rows;
  for (const auto& op : trace.ops())
    rows.push_back(fmt::format("{} {}-{}", op.name, op.start.ToString(), op.end.ToString()));
  return rows;
}
using Rows = std::vector<std::string>;

Layer Dense() {
  Layer layer;
  layer.forward = 3;
  layer.backward = 6;
  return layer;
}

TEST(MadMaxTrace, TwoLayersReplicated) {
  Layer layer = Dense();
  layer.gradient_reduce = 4;
  const auto trace = TraceMadMax<Rational>({layer, layer});
  EXPECT_EQ(Table(trace), (Rows{"f.0. 0-3", "f.1. 3-6", "b.1. 6-12", "gr.1. 12-16", "b.0. 12-18", "gr.0. 18-22"}));
  EXPECT_EQ(trace.exposed(), Rational(4));  // of 8
}

TEST(MadMaxTrace, TwoLayersFullySharded) {
  Layer layer = Dense();
  layer.gather = 2;
  layer.reduce_scatter = 2;
  EXPECT_EQ(Table(TraceMadMax<Rational>({layer, layer})),
            (Rows{"ag.f.0. 0-2", "f.0. 2-5", "ag.f.1. 2-4", "f.1. 5-8", "ag.b.1. 4-6", "ag.b.0. 6-8", "b.1. 8-14",
                  "rs.1. 14-16", "b.0. 14-20", "rs.0. 20-22"}));
  EXPECT_EQ(Table(TraceMadMax<Rational>({layer, layer}, {.limit_backward_gathers = true})),
            (Rows{"ag.f.0. 0-2", "f.0. 2-5", "ag.f.1. 2-4", "f.1. 5-8", "ag.b.1. 5-7", "ag.b.0. 8-10", "b.1. 8-14",
                  "rs.1. 14-16", "b.0. 14-20", "rs.0. 20-22"}));
}

TEST(MadMaxTrace, TwoLayersTensorParallel) {
  Layer layer = Dense();
  layer.tensor_reduce = 1;
  const auto trace = TraceMadMax<Rational>({layer, layer});
  EXPECT_EQ(Table(trace), (Rows{"f.0. 0-3", "ar.f.0. 3-4", "f.1. 4-7", "ar.f.1. 7-8", "b.1. 8-14", "ar.b.1. 14-15",
                                "b.0. 15-21", "ar.b.0. 21-22"}));
  EXPECT_EQ(trace.exposed(), trace.communication());  // it blocks
}

TEST(MadMaxTrace, TwoLayersTensorParallelInsideReplicasBetween) {
  Layer layer = Dense();
  layer.tensor_reduce = 1;
  layer.gradient_reduce = 4;
  EXPECT_EQ(Table(TraceMadMax<Rational>({layer, layer})),
            (Rows{"f.0. 0-3", "ar.f.0. 3-4", "f.1. 4-7", "ar.f.1. 7-8", "b.1. 8-14", "ar.b.1. 14-15", "gr.1. 15-19",
                  "b.0. 15-21", "ar.b.0. 21-22", "gr.0. 22-26"}));
}

// A table beside a bottom layer; the top layer joins them.
TEST(MadMaxTrace, TwoLayersAndASplitTable) {
  Layer table;
  table.lookup = true;
  table.forward = table.backward = 2;
  table.exchange = 5;
  Layer bottom = Dense();
  bottom.gradient_reduce = 4;
  Layer top = bottom;
  top.joins_lookups = true;
  EXPECT_EQ(Table(TraceMadMax<Rational>({table, bottom, top})),
            (Rows{"f.0. 0-2", "a2a.f.0. 2-7", "f.1. 2-5", "f.2. 7-10", "b.2. 10-16", "gr.2. 16-20", "a2a.b.0. 20-25",
                  "b.1. 16-22", "gr.1. 25-29", "b.0. 25-27"}));
  EXPECT_EQ(Table(TraceMadMax<Rational>({table, bottom, top}, {.training = false})),
            (Rows{"f.0. 0-2", "a2a.f.0. 2-7", "f.1. 2-5", "f.2. 7-10"}));
}

TEST(MadMaxTrace, PrefixesEndWithADot) {
  TwoStreamTrace<Rational> trace;
  trace.Add("f.1.", Work::gemm, Rational(2));
  trace.Add("f.11.", Work::gemm, Rational(5));
  trace.Add("ag.1.", Work::all_gather, Rational(1), {"f.1."});
  EXPECT_EQ(trace.op("ag.1.").start, Rational(2));
  trace.Add("ar.1.", Work::all_reduce, Rational(1), {"f.", "nothing."});
  EXPECT_EQ(trace.op("ar.1.").start, Rational(7));
  EXPECT_THROW(trace.Add("f.2", Work::gemm, Rational(1)), InternalError);
  EXPECT_THROW(trace.Add("f.1.", Work::gemm, Rational(1)), InternalError);
}

TEST(MadMaxTrace, RefusesLookupsWithoutAJoin) {
  Layer table;
  table.lookup = true;
  EXPECT_THROW(TraceMadMax<Rational>({table, Dense()}), UserError);
  EXPECT_THROW(TraceMadMax<Rational>({Dense(), table}), UserError);
  Layer joins = Dense();
  joins.joins_lookups = true;
  EXPECT_THROW(TraceMadMax<Rational>({table, joins, joins}), UserError);
}

struct Sizes {
  bool lookups, sharded, tensor, replicas;
};

class RandomLayers {
 public:
  explicit RandomLayers(unsigned seed) : random_(seed) {}

  std::vector<Layer> Next(const Sizes& sizes) {
    const Rational unit(1, Uniform(1, 6));
    const auto ticks = [&](int least) { return Rational(Uniform(least, 12)) * unit; };
    const int tables = sizes.lookups ? Uniform(1, 3) : 0, dense = Uniform(1, 7);
    const int join = Uniform(0, dense - 1), first_backward = Uniform(0, join);
    std::vector<Layer> layers(tables + dense);
    for (int i = 0; i < tables + dense; ++i) {
      Layer& layer = layers[i];
      layer.forward = ticks(1);
      layer.backward = ticks(1);
      layer.lookup = i < tables;
      layer.trains = Uniform(0, 4) > 0;
      if (layer.lookup) {
        (Uniform(0, 1) == 0 ? layer.exchange : layer.gradient_reduce) = ticks(1);
        continue;
      }
      layer.joins_lookups = tables > 0 && i - tables == join;
      layer.backward_runs = i - tables >= first_backward;
      if (sizes.sharded && Uniform(0, 3) > 0) {
        layer.gather = ticks(1);
        layer.reduce_scatter = ticks(1);
      }
      if (sizes.tensor && Uniform(0, 3) > 0) layer.tensor_reduce = ticks(1);
      if (sizes.replicas && Uniform(0, 3) > 0) layer.gradient_reduce = ticks(1);
    }
    return layers;
  }
  int Uniform(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }

 private:
  std::mt19937 random_;
};

// The same step as a schedule. `tensor_queue`: 0 with everything else, 1 a group of its own.
Rational ReplayStep(const std::vector<Layer>& layers, int ranks, bool limit, int tensor_queue) {
  std::vector<const Layer*> tables, dense;
  for (const Layer& layer : layers) (layer.lookup ? tables : dense).push_back(&layer);
  const int n = static_cast<int>(dense.size());
  StepSchedule<Rational> s(ranks, n, 2);
  const Rational none(0);

  std::vector<int> rows;  // what the joining layer waits for
  for (const Layer* table : tables) {
    rows.push_back(s.Task(table->forward));
    if (table->exchange > none) rows.push_back(s.Collective(0, table->exchange, {rows.back()}));
  }
  std::vector<int> computes;  // of both passes
  std::vector<int> blocks;    // tensor all-reduce of the layer before
  const auto tensor = [&](const Layer& layer) {
    blocks.clear();
    if (layer.tensor_reduce > none)
      blocks.push_back(s.Collective(tensor_queue, layer.tensor_reduce, {computes.back()}));
  };
  for (int k = 0; k < n; ++k) {
    std::vector<int> after = blocks;
    if (dense[k]->gather > none)
      after.push_back(s.Collective(0, dense[k]->gather, k >= 2 ? std::vector{computes[k - 2]} : std::vector<int>{}));
    if (dense[k]->joins_lookups) after.insert(after.end(), rows.begin(), rows.end());
    computes.push_back(s.Forward(k, dense[k]->forward, after));
    tensor(*dense[k]);
  }

  int first = 0;
  while (!dense[first]->backward_runs) ++first;
  std::map<int, int> gathers;
  const auto gather = [&](int k) {
    if (k < first || dense[k]->gather == none) return;
    const int visit = n + (n - 1 - k);
    gathers[k] =
        s.Collective(0, dense[k]->gather, limit && visit >= 2 ? std::vector{computes[visit - 2]} : std::vector<int>{});
  };
  std::vector<std::vector<int>> ready(tables.size());  // what the update of a table waits for
  gather(n - 1);
  for (int k = n - 1; k >= first; --k) {
    gather(k - 1);
    std::vector<int> after = blocks;
    if (gathers.count(k)) after.push_back(gathers[k]);
    computes.push_back(s.Backward(k, dense[k]->backward, after));
    tensor(*dense[k]);
    if (dense[k]->trains) {
      const bool scattered = dense[k]->reduce_scatter > none;
      int last = 0;
      if (scattered) last = s.Reduce(k, 0, dense[k]->reduce_scatter);  // waits for the backward by its effects
      if (dense[k]->gradient_reduce > none) {
        if (scattered) {
          s.Collective(0, dense[k]->gradient_reduce, {last});
        } else {
          s.Reduce(k, 0, dense[k]->gradient_reduce);
        }
      }
    }
    if (!dense[k]->joins_lookups) continue;
    std::vector<int> gradients = blocks;
    gradients.push_back(computes.back());
    for (size_t t = 0; t < tables.size(); ++t) {
      if (!tables[t]->trains) continue;
      if (tables[t]->exchange > none) ready[t].push_back(s.Collective(0, tables[t]->exchange, gradients));
      if (tables[t]->gradient_reduce > none) ready[t].push_back(s.Collective(0, tables[t]->gradient_reduce, gradients));
    }
  }
  for (size_t t = 0; t < tables.size(); ++t)
    if (tables[t]->trains) s.Task(tables[t]->backward, ready[t]);
  return s.Replay().makespan;
}

TEST(MadMaxReplay, TraceIsTheReplayOnOneQueue) {
  RandomLayers random(20231002);
  int compared = 0;
  for (int strategies = 0; strategies < 16; ++strategies)
    for (int i = 0; i < 120; ++i) {
      const auto layers =
          random.Next({(strategies & 1) != 0, (strategies & 2) != 0, (strategies & 4) != 0, (strategies & 8) != 0});
      const bool limit = i % 2 == 0;
      const auto trace = TraceMadMax<Rational>(layers, {.limit_backward_gathers = limit});
      ASSERT_EQ(trace.makespan().ToString(), ReplayStep(layers, random.Uniform(1, 3), limit, 0).ToString())
          << strategies << " " << i;
      ++compared;
    }
  EXPECT_EQ(compared, 16 * 120);
}

// Where the trace is not the engine: groups have queues of their own there.
TEST(MadMaxReplay, QueuesOfTheirOwnAreAtMostAsLong) {
  RandomLayers random(5);
  int shorter = 0;
  for (int i = 0; i < 400; ++i) {
    const auto layers = random.Next({false, true, true, true});
    const Rational trace = TraceMadMax<Rational>(layers).makespan(), replay = ReplayStep(layers, 2, false, 1);
    ASSERT_TRUE(replay <= trace);
    shorter += replay < trace;
  }
  EXPECT_GT(shorter, 100);
}

// One stream is a chain or hidden: max(compute, communication) <= step <= their sum.
TEST(MadMaxReplay, StepIsBetweenTheLongerStreamAndTheSum) {
  RandomLayers random(11);
  for (int i = 0; i < 500; ++i) {
    const auto trace = TraceMadMax<Rational>(random.Next({i % 2 == 0, true, true, true}));
    EXPECT_TRUE(trace.makespan() >= std::max(trace.compute(), trace.communication()));
    EXPECT_TRUE(trace.makespan() <= trace.compute() + trace.communication());
  }
}

// Equal sharded layers with two gather buffers: the closed form of FSDP.
TEST(MadMaxReplay, EqualShardedLayersAreTheFsdpForm) {
  RandomLayers random(3);
  for (int i = 0; i < 500; ++i) {
    const auto ticks = [&] { return Rational(random.Uniform(1, 12), random.Uniform(1, 4)); };
    Layer layer;
    layer.forward = ticks();
    layer.backward = ticks();
    layer.gather = ticks();
    layer.reduce_scatter = ticks();
    const int layers = random.Uniform(1, 9);
    const FsdpLayerTimes<Rational> t{layer.gather, layer.forward, layer.backward, layer.reduce_scatter};
    const Rational step = FsdpLayerwise(t, layers, {});
    ASSERT_EQ(TraceMadMax<Rational>(std::vector(layers, layer), {.limit_backward_gathers = true}).makespan().ToString(),
              step.ToString());
    // Without the limit of the backward's gathers it is never longer.
    ASSERT_TRUE(TraceMadMax<Rational>(std::vector(layers, layer)).makespan() <= step);
  }
}

}  // namespace
}  // namespace penstock::cost
