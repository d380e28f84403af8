#include "cost/mad_max.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "cost/mad_max_search.h"

namespace penstock::cost {
namespace {

// Two nodes of four devices; 1e12 FLOP/s and 1e11 B/s attained, 1e10 B/s inside, 1e9 B/s between.
MadMaxSystem System() {
  return {.name = "two nodes",
          .flops_per_second = 2e12,
          .flops_utilisation = 0.5,
          .memory_bytes_per_second = 2e11,
          .memory_utilisation = 0.5,
          .memory_bytes = 16e9,
          .levels = {{"node", 4, 1e10, 0}, {"cluster", 2, 1e9, 0}}};
}

MadMaxModel Transformer(int blocks = 3) {
  MadMaxModel model{"transformer", {}};
  for (int i = 0; i < blocks; ++i) {
    for (const bool attention : {true, false}) {
      MadMaxLayer layer;
      layer.layer_class = attention ? "attention" : "feed-forward";
      layer.name = fmt::format("{} {}", layer.layer_class, i);
      layer.parameters = attention ? 4e6 : 8e6;
      layer.forward_flops = attention ? 1e10 : 2e10;
      layer.output_bytes = 2e6;
      layer.kept_bytes = attention ? 8e6 : 1.2e7;
      model.layers.push_back(layer);
    }
  }
  return model;
}

MadMaxModel Recommender() {
  MadMaxModel model{"recommender", {}};
  const auto add = [&](const char* name, const char* layer_class) -> MadMaxLayer& {
    MadMaxLayer& layer = model.layers.emplace_back();
    layer.name = name;
    layer.layer_class = layer_class;
    layer.bytes_per_parameter = 4;
    layer.optimizer_bytes_per_parameter = 0;
    return layer;
  };
  for (const char* name : {"tables a", "tables b"}) {
    MadMaxLayer& table = add(name, "embedding");
    table.lookup = true;
    table.parameters = 4e8;
    table.lookup_bytes = 1e5;
    table.output_bytes = 5e3;
  }
  for (const char* name : {"bottom", "top"}) {
    MadMaxLayer& dense = add(name, "dense");
    dense.parameters = 2e6;
    dense.forward_flops = 1e7;
    dense.output_bytes = 4e3;
    dense.joins_lookups = std::string_view(name) == "top";
  }
  return model;
}

Mapping Both(const Strategy& strategy) { return {{"attention", strategy}, {"feed-forward", strategy}}; }
constexpr double kBatch = 64;

MadMaxEstimate Estimate(const Mapping& mapping, const MadMaxSystem& system = System()) {
  return EstimateMadMax(Transformer(), system, {.global_batch = kBatch}, mapping);
}
MadMaxLayerTimes<double> FirstLayer(const Mapping& mapping, const MadMaxSystem& system = System()) {
  return MadMaxTimes(Transformer(), system, {.global_batch = kBatch}, mapping).front();
}

TEST(MadMax, DurationsByHand) {
  const double weights = 4e6 * 2;
  const auto ddp = FirstLayer(Both({{Split::ddp, 8}}));  // over the outer link
  EXPECT_DOUBLE_EQ(ddp.forward, 8 * 1e10 / 1e12);
  EXPECT_DOUBLE_EQ(ddp.backward, 2 * ddp.forward);
  EXPECT_DOUBLE_EQ(ddp.gradient_reduce, 2 * 7.0 / 8 * weights / 1e9);
  EXPECT_EQ(ddp.gather + ddp.reduce_scatter + ddp.tensor_reduce + ddp.exchange, 0);

  const auto fsdp = FirstLayer(Both({{Split::fsdp, 8}}));
  EXPECT_DOUBLE_EQ(fsdp.gather, 7.0 / 8 * weights / 1e9);
  EXPECT_DOUBLE_EQ(fsdp.reduce_scatter, fsdp.gather);
  // Two gathers and a reduction against reduce-scatter and gather: 1.5 times the bytes.
  EXPECT_DOUBLE_EQ(2 * fsdp.gather + fsdp.reduce_scatter, 1.5 * ddp.gradient_reduce);

  const auto tp = FirstLayer(Both({{Split::tp, 4}, {Split::ddp, 2}}));
  EXPECT_DOUBLE_EQ(tp.forward, ddp.forward);  // four times the samples, a fourth of the work
  EXPECT_DOUBLE_EQ(tp.tensor_reduce, 2 * 3.0 / 4 * 32 * 2e6 / 1e10);
  // The rank holds, and reduces, a fourth.
  EXPECT_DOUBLE_EQ(tp.gradient_reduce, 2 * 1.0 / 2 * weights / 4 / 1e9);

  const auto hybrid = FirstLayer(Both({{Split::fsdp, 4}, {Split::ddp, 2}}));
  EXPECT_DOUBLE_EQ(hybrid.gather, 3.0 / 4 * weights / 1e10);
  EXPECT_DOUBLE_EQ(hybrid.gradient_reduce, 2 * 1.0 / 2 * weights / 4 / 1e9);

  const auto sharded_tensor = FirstLayer(Both({{Split::fsdp, 4}, {Split::tp, 2}}));
  EXPECT_DOUBLE_EQ(sharded_tensor.gather, 3.0 / 4 * weights / 2 / 1e10);
  EXPECT_DOUBLE_EQ(sharded_tensor.tensor_reduce, 2 * 1.0 / 2 * 16 * 2e6 / 1e9);

  MadMaxSystem late = System();
  late.levels[1].latency_seconds = 1e-3;
  EXPECT_DOUBLE_EQ(FirstLayer(Both({{Split::ddp, 8}}), late).gradient_reduce, ddp.gradient_reduce + 14e-3);
}

TEST(MadMax, LookupsByHand) {
  const auto times = [](const Strategy& tables) {
    return MadMaxTimes(Recommender(), System(), {.global_batch = 8000},
                       {{"embedding", tables}, {"dense", {{Split::ddp, 8}}}})
        .front();
  };
  const auto mp = times({{Split::mp, 8}});
  EXPECT_DOUBLE_EQ(mp.forward, 1000 * 1e5 / 1e11);
  EXPECT_DOUBLE_EQ(mp.backward, mp.forward);
  EXPECT_DOUBLE_EQ(mp.exchange, 7.0 / 8 * 1000 * 5e3 / 1e9);
  EXPECT_EQ(mp.gradient_reduce, 0);
  const auto ddp = times({{Split::ddp, 8}});
  EXPECT_EQ(ddp.exchange, 0);
  EXPECT_DOUBLE_EQ(ddp.gradient_reduce, 2 * 7.0 / 8 * 1000 * 1e5 / 1e9);
  const auto both = times({{Split::mp, 4}, {Split::ddp, 2}});
  EXPECT_DOUBLE_EQ(both.exchange, 3.0 / 4 * 1000 * 5e3 / 1e10);
  EXPECT_DOUBLE_EQ(both.gradient_reduce, 2 * 1.0 / 2 * 1000 * 1e5 / 1e9);
}

TEST(MadMax, MemoryByHand) {
  const MadMaxModel model = Transformer(1);
  const auto memory = [&](const Strategy& s, const MadMaxTask& task) {
    return MadMaxMemory(model, System(), task, Both(s));
  };
  const double parameters = 1.2e7, kept = 2e7, outputs = 4e6;
  EXPECT_DOUBLE_EQ(memory({{Split::ddp, 8}}, {.global_batch = 64}), 16 * parameters + 8 * (kept + outputs));
  EXPECT_DOUBLE_EQ(memory({{Split::fsdp, 8}}, {.global_batch = 64}),
                   16 * parameters / 8 + 8 * (kept + outputs) + 2 * parameters);
  EXPECT_DOUBLE_EQ(memory({{Split::tp, 4}, {Split::ddp, 2}}, {.global_batch = 64}),
                   16 * parameters / 4 + 32 * (kept / 4 + outputs));
  // Inference: parameters and one output.
  EXPECT_DOUBLE_EQ(memory({{Split::ddp, 8}}, {.global_batch = 64, .training = false}), 2 * parameters + 8 * 2e6);
  // Frozen layers have neither gradients nor optimizer state.
  EXPECT_DOUBLE_EQ(memory({{Split::ddp, 8}}, {.global_batch = 64, .frozen = {"attention"}}),
                   2 * parameters + 14 * 8e6 + 8 * (kept + outputs));
}

TEST(MadMax, OneDeviceDoesNotCommunicate) {
  MadMaxSystem one = System();
  one.levels = {{"device", 1, 1, 1}};
  for (const Split split : {Split::ddp, Split::fsdp, Split::tp}) {
    const MadMaxEstimate e = Estimate(Both({{split, 1}}), one);
    EXPECT_EQ(e.communication_seconds, 0);
    EXPECT_DOUBLE_EQ(e.seconds, e.compute_seconds);
    EXPECT_EQ(e.overlapped, 0);
  }
  // A degree of 1 is as if it were not there.
  EXPECT_EQ(Estimate(Both({{Split::tp, 1}, {Split::ddp, 8}})).seconds, Estimate(Both({{Split::ddp, 8}})).seconds);
  MadMaxSystem infinite = System();
  for (auto& level : infinite.levels) level.bytes_per_second = 0;
  for (const auto& strategy : StrategiesOf(Transformer().layers[0], infinite, {}))
    EXPECT_DOUBLE_EQ(Estimate(Both(strategy), infinite).seconds, Estimate(Both(strategy), infinite).compute_seconds);
}

TEST(MadMax, FasterHardwareIsNeverSlower) {
  for (const Strategy& strategy : StrategiesOf(Transformer().layers[0], System(), {})) {
    const MadMaxEstimate now = Estimate(Both(strategy));
    EXPECT_GE(now.seconds, std::max(now.compute_seconds, now.communication_seconds) * (1 - 1e-12));
    EXPECT_LE(now.seconds, (now.compute_seconds + now.communication_seconds) * (1 + 1e-12));
    for (size_t r = 0; r < kMadMaxResourceNames.size(); ++r) {
      const auto resource = static_cast<MadMaxResource>(r);
      EXPECT_LE(Estimate(Both(strategy), Scaled(System(), resource, 1.7)).seconds, now.seconds * (1 + 1e-12))
          << ToString(strategy) << " " << Name(resource);
    }
    // Twice everything without latency: half the step.
    EXPECT_NEAR(Estimate(Both(strategy), Scaled(System(), MadMaxResource::all, 2)).seconds / now.seconds, 0.5, 1e-12);
  }
}

// Exposed communication of a blocking strategy is all of it; gradients hide under a long backward.
TEST(MadMax, ExposedCommunication) {
  const MadMaxEstimate tp = Estimate(Both({{Split::tp, 8}}));
  EXPECT_NEAR(tp.exposed_seconds, tp.communication_seconds, 1e-12);
  EXPECT_NEAR(tp.overlapped, 0, 1e-12);
  const MadMaxEstimate ddp = Estimate(Both({{Split::ddp, 8}}));
  EXPECT_GT(ddp.overlapped, 0.5);
  // All that shows is the all-reduce of the first layer, after the last backward.
  EXPECT_NEAR(ddp.exposed_seconds, FirstLayer(Both({{Split::ddp, 8}})).gradient_reduce, 1e-12);
  EXPECT_NEAR(ddp.samples_per_second, kBatch / ddp.seconds, 1e-9);
}

TEST(MadMax, FrozenLayersAndInference) {
  const Mapping mapping = Both({{Split::ddp, 8}});
  const auto estimate = [&](const MadMaxTask& task) { return EstimateMadMax(Transformer(1), System(), task, mapping); };
  const double forward = 8 * 3e10 / 1e12;
  EXPECT_DOUBLE_EQ(estimate({.global_batch = 64}).compute_seconds, 3 * forward);
  EXPECT_DOUBLE_EQ(estimate({.global_batch = 64, .training = false}).compute_seconds, forward);
  // Attention is first and frozen: its backward never runs.
  EXPECT_DOUBLE_EQ(estimate({.global_batch = 64, .frozen = {"attention"}}).compute_seconds,
                   forward + 2 * 8 * 2e10 / 1e12);
  // The feed-forward is behind a layer that trains: half its backward, no gradients sent.
  const MadMaxEstimate head = estimate({.global_batch = 64, .frozen = {"feed-forward"}});
  EXPECT_DOUBLE_EQ(head.compute_seconds, forward + 2 * 8 * 1e10 / 1e12 + 8 * 2e10 / 1e12);
  EXPECT_DOUBLE_EQ(head.trace.Busy(Work::all_reduce), 2 * 7.0 / 8 * 8e6 / 1e9);
  // Frozen tables are neither updated nor exchanged again.
  const MadMaxTask frozen{.global_batch = 8000, .frozen = {"embedding"}}, trained{.global_batch = 8000};
  const Mapping tables = {{"embedding", {{Split::mp, 8}}}, {"dense", {{Split::ddp, 8}}}};
  EXPECT_DOUBLE_EQ(2 * EstimateMadMax(Recommender(), System(), frozen, tables).trace.Busy(Work::all_to_all),
                   EstimateMadMax(Recommender(), System(), trained, tables).trace.Busy(Work::all_to_all));
}

TEST(MadMax, RefusesStrategiesThatDoNotSuit) {
  const MadMaxLayer dense = Transformer().layers[0], table = Recommender().layers[0];
  EXPECT_THROW(CheckStrategy(dense, {{Split::ddp, 4}}, System()), UserError);
  EXPECT_THROW(CheckStrategy(dense, {{Split::ddp, 4}, {Split::fsdp, 2}}, System()), UserError);
  EXPECT_THROW(CheckStrategy(dense, {{Split::mp, 8}}, System()), UserError);
  EXPECT_THROW(CheckStrategy(table, {{Split::tp, 8}}, System()), UserError);
  EXPECT_THROW(Estimate({{"attention", {{Split::ddp, 8}}}}), UserError);
  EXPECT_NO_THROW(CheckStrategy(dense, {{Split::tp, 2}, {Split::ddp, 4}}, System()));
}

TEST(MadMaxSearch, StrategiesAreAllThatSuit) {
  const MadMaxLayer dense = Transformer().layers[0], table = Recommender().layers[0];
  // Flat: 3. Inner degree 2 or 4 (4 alone is a level): fsdp-ddp, fsdp-tp, ddp-tp, tp-ddp.
  EXPECT_EQ(StrategiesOf(dense, System(), {}).size(), 3u + 2 * 4);
  EXPECT_EQ(StrategiesOf(dense, System(), {.degree_splits = false}).size(), 3u + 4);
  EXPECT_EQ(StrategiesOf(table, System(), {}).size(), 2u + 2 * 2);
  for (const Strategy& s : StrategiesOf(dense, System(), {.max_tensor_degree = 2})) {
    EXPECT_NO_THROW(CheckStrategy(dense, s, System()));
    for (const SplitOver& entry : s) EXPECT_TRUE(entry.split != Split::tp || entry.degree <= 2);
  }
}

TEST(MadMaxSearch, IsTheBruteForceBestAndNeverInfeasible) {
  const MadMaxTask task{.global_batch = kBatch};
  for (const double memory : {16e9, 6e8, 2e8, 1e7}) {
    MadMaxSystem system = System();
    system.memory_bytes = memory;
    const MadMaxSearchResult found = SearchMadMax(Transformer(), system, task);
    double best = 0;
    int64_t points = 0, feasible = 0;
    for (const Strategy& a : StrategiesOf(Transformer().layers[0], system, {}))
      for (const Strategy& f : StrategiesOf(Transformer().layers[1], system, {})) {
        ++points;
        const MadMaxEstimate e = EstimateMadMax(Transformer(), system, task, {{"attention", a}, {"feed-forward", f}});
        feasible += e.fits;
        if (e.fits) best = std::max(best, e.samples_per_second);
      }
    EXPECT_EQ(found.evaluated, points);
    EXPECT_EQ(found.feasible, feasible);
    EXPECT_EQ(found.found, feasible > 0);
    EXPECT_EQ(found.found ? found.estimate.samples_per_second : 0, best);
    if (found.found) {
      EXPECT_LE(found.estimate.memory_bytes, memory);
    }
  }
  EXPECT_THROW(SearchMadMax(Transformer(), System(), task, {.max_points = 100}), UserError);
  const MadMaxSearchResult fixed =
      SearchMadMax(Transformer(), System(), task, {.max_points = 100, .fixed = Both({{Split::ddp, 8}})});
  EXPECT_EQ(fixed.evaluated, 1);
}

// Fewer samples than devices: only strategies that share samples are left.
TEST(MadMaxSearch, EveryDeviceHasASample) {
  const MadMaxSearchResult found = SearchMadMax(Transformer(), System(), {.global_batch = 2});
  ASSERT_TRUE(found.found);
  for (const auto& [name, strategy] : found.mapping) {
    int64_t tensor = 1;
    for (const SplitOver& s : strategy)
      if (s.split == Split::tp) tensor *= s.degree;
    EXPECT_GE(tensor, 4) << ToString(found.mapping);
  }
}

// Best-found against flat sharding, and strategies that differ by class of layers.
TEST(MadMaxSearch, BeatsFlatSharding) {
  const MadMaxTask task{.global_batch = 8000};
  const MadMaxSearchResult found = SearchMadMax(Recommender(), System(), task);
  const MadMaxEstimate flat = EstimateMadMax(Recommender(), System(), task, FlatMapping(Recommender(), System()));
  EXPECT_GT(found.estimate.samples_per_second, flat.samples_per_second * 1.05);
  EXPECT_NE(found.mapping.at("dense"), found.mapping.at("embedding"));
}

TEST(MadMaxSearch, WhatIfSearchesAgain) {
  const MadMaxTask task{.global_batch = kBatch};
  const auto rows = WhatIfMadMax(Transformer(), System(), task, 2);
  ASSERT_EQ(rows.size(), kMadMaxResourceNames.size());
  double largest_alone = 0;
  for (const MadMaxWhatIf& row : rows) {
    EXPECT_GE(row.gain, 1 - 1e-12) << Name(row.resource);
    EXPECT_LE(row.gain, 2 + 1e-12) << Name(row.resource);
    if (row.resource != MadMaxResource::all) largest_alone = std::max(largest_alone, row.gain);
  }
  EXPECT_NEAR(rows.back().gain, 2, 1e-12);  // no latency, memory is no limit
  EXPECT_LT(largest_alone, 2);
  const std::string text = Explain(rows, 2);
  EXPECT_NE(text.find("2x all of them: 2.00x samples/s with attention: "), std::string::npos) << text;
}

TEST(MadMax, ExplainsInAFewLines) {
  const Mapping mapping = Both({{Split::tp, 4}, {Split::ddp, 2}});
  const std::string text = Explain(Transformer(), System(), mapping, Estimate(mapping));
  EXPECT_NE(text.find("transformer on two nodes (8 devices), attention: tp 4, ddp 2; feed-forward: tp 4, ddp 2"),
            std::string::npos)
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  const MadMaxTask task{.global_batch = kBatch};
  const std::string best = Explain(Transformer(), System(), task, SearchMadMax(Transformer(), System(), task));
  EXPECT_NE(best.find("flat sharding over all devices: "), std::string::npos) << best;
}

}  // namespace
}  // namespace penstock::cost
