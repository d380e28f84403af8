#include "cost/fsdp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cost/fsdp_search.h"

namespace penstock::cost {
namespace {

FsdpModel Model() { return {.layers = 24, .hidden = 2048}; }
FsdpCluster Cluster() {
  return {.ranks = 64,
          .memory_bytes = 40e9,
          .flops_per_second = 3.12e14,
          .efficiency = 0.6,
          .bytes_per_second = 2e10,
          .latency_seconds = 0};
}
// Without what the closed bounds leave out.
FsdpChoice Ideal() { return {.zero = 3, .kept = 0, .sequence = 2048, .expose_ends = false, .working_set = false}; }

TEST(Fsdp, StateIsSixteenBytesPerParameterOverTheGroup) {
  const double phi = 12.0 * 24 * 2048 * 2048;
  EXPECT_EQ(Model().phi(), phi);
  EXPECT_DOUBLE_EQ(FsdpMemoryOf(Model(), Cluster(), {.zero = 3}).state(), 16 * phi / 64);
  EXPECT_DOUBLE_EQ(FsdpMemoryOf(Model(), Cluster(), {.zero = 2}).state(), 2 * phi + 14 * phi / 64);
  EXPECT_DOUBLE_EQ(FsdpMemoryOf(Model(), Cluster(), {.zero = 1}).state(), 4 * phi + 12 * phi / 64);
  FsdpModel single = Model();  // fp32: 4 + 4 + 8
  single.element_bytes = 4;
  single.optimizer_bytes_per_parameter = 8;
  EXPECT_DOUBLE_EQ(FsdpMemoryOf(single, Cluster(), {.zero = 3}).state(), 16 * phi / 64);
  // Two gathered layers and a whole gradient of one.
  EXPECT_DOUBLE_EQ(FsdpMemoryOf(Model(), Cluster(), {.zero = 3}).buffers, 3 * 2.0 * 12 * 2048 * 2048);
  // Gradients that wait for the last micro-batch are whole.
  EXPECT_DOUBLE_EQ(FsdpMemoryOf(Model(), Cluster(), {.zero = 3, .no_sync = true}).gradients, 2 * phi);
  FsdpCluster hybrid = Cluster();
  hybrid.shard_group = 8;
  EXPECT_DOUBLE_EQ(FsdpMemoryOf(Model(), hybrid, {.zero = 3}).state(), 16 * phi / 8);
}

// What fits fits, and one sequence more does not.
TEST(Fsdp, MaxTokensFillTheMemory) {
  for (const double kept : {0.0, 0.35, 1.0})
    for (const int zero : {1, 2, 3}) {
      FsdpChoice choice{.zero = zero, .kept = kept, .sequence = 512};
      const FsdpMemory m = FsdpMemoryOf(Model(), Cluster(), choice);
      const auto used = [&](double tokens) { return m.state() + m.buffers + tokens * m.per_token; };
      EXPECT_LE(used(static_cast<double>(m.max_tokens)), 40e9);
      EXPECT_GT(used(static_cast<double>(m.max_tokens) + 1), 40e9);
      const double tokens = EstimateFsdp(Model(), Cluster(), choice).tokens;
      EXPECT_EQ(std::fmod(tokens, 512), 0);
      EXPECT_GT(used(tokens + 512), 40e9);
      choice.tokens = tokens + 512;
      EXPECT_FALSE(EstimateFsdp(Model(), Cluster(), choice).fits);
      EXPECT_EQ(EstimateFsdp(Model(), Cluster(), choice).bound, FsdpBound::memory);
    }
  // 17 H Q per token and layer when all is kept.
  EXPECT_DOUBLE_EQ(FsdpMemoryOf(Model(), Cluster(), {.kept = 1}).per_token, 24 * 17 * 2048 * 2.0);
  EXPECT_DOUBLE_EQ(FsdpMemoryOf(Model(), Cluster(), {.kept = 0}).per_token, (24 + 17) * 2048 * 2.0);
}

TEST(Fsdp, MaxLayersAreTheMostThatFit) {
  FsdpModel model = Model();
  FsdpChoice choice{.zero = 3, .kept = 0.5, .sequence = 4096};
  const auto most = FsdpMaxLayers(model, Cluster(), choice);
  ASSERT_GT(most, 1);
  model.layers = static_cast<int>(most);
  EXPECT_GE(FsdpMemoryOf(model, Cluster(), choice).max_tokens, 4096);
  model.layers += 1;
  EXPECT_LT(FsdpMemoryOf(model, Cluster(), choice).max_tokens, 4096);
}

TEST(Fsdp, BytesSentPerStep) {
  const double pass = 2 * Model().phi() * 63 / 64;
  EXPECT_DOUBLE_EQ(EstimateFsdp(Model(), Cluster(), {.zero = 3, .tokens = 2048}).bytes_sent, 3 * pass);
  EXPECT_DOUBLE_EQ(EstimateFsdp(Model(), Cluster(), {.zero = 2, .tokens = 2048}).bytes_sent, 2 * pass);
  EXPECT_DOUBLE_EQ(EstimateFsdp(Model(), Cluster(), {.zero = 1, .tokens = 2048}).bytes_sent, 2 * pass);
  EXPECT_DOUBLE_EQ(EstimateFsdp(Model(), Cluster(), {.zero = 3, .tokens = 512, .accumulation = 4}).bytes_sent,
                   12 * pass);
  EXPECT_DOUBLE_EQ(
      EstimateFsdp(Model(), Cluster(), {.zero = 3, .tokens = 512, .accumulation = 4, .no_sync = true}).bytes_sent,
      9 * pass);
  FsdpCluster hybrid = Cluster();
  hybrid.shard_group = 8;  // and all-reduce of an eighth over 8 replicas
  EXPECT_DOUBLE_EQ(EstimateFsdp(Model(), hybrid, {.zero = 3, .tokens = 2048}).bytes_sent,
                   3 * 2 * Model().phi() * 7 / 8 + 2 * 7.0 / 8 * 2 * Model().phi() / 8);
}

TEST(Fsdp, TokensThatHideTheForward) {
  FsdpChoice choice = Ideal();
  choice.tokens = EstimateFsdp(Model(), Cluster(), choice).tokens_to_hide_forward;
  const FsdpEstimate at = EstimateFsdp(Model(), Cluster(), choice);
  EXPECT_NEAR(at.forward / at.gather, 1, 1e-12);
  // e F Q / (S (2 + s/(3H))) times (N-1)/N: independent of the number of layers.
  EXPECT_NEAR(choice.tokens, 0.6 * 3.12e14 * 2 / (2e10 * (2 + 2048.0 / (3 * 2048))) * 63 / 64, 1e-6);
  FsdpModel deeper = Model();
  deeper.layers *= 3;
  EXPECT_NEAR(EstimateFsdp(deeper, Cluster(), choice).tokens_to_hide_forward, choice.tokens, 1e-6);
  // Twice the bandwidth, half the tokens.
  FsdpCluster fast = Cluster();
  fast.bytes_per_second *= 2;
  EXPECT_NEAR(EstimateFsdp(Model(), fast, choice).tokens_to_hide_forward, choice.tokens / 2, 1e-6);
}

// Throughput at the change of regime: no jump, linear before, constant after.
TEST(Fsdp, ThroughputIsContinuousWhereTheRegimeChanges) {
  FsdpChoice choice = Ideal();
  const FsdpEstimate any = EstimateFsdp(Model(), Cluster(), choice);
  for (const double edge : {any.tokens_to_hide_forward, any.tokens_to_hide_step}) {
    const auto throughput = [&](double tokens) {
      choice.tokens = tokens;
      return EstimateFsdp(Model(), Cluster(), choice).tokens_per_second;
    };
    EXPECT_NEAR(throughput(edge * (1 - 1e-9)) / throughput(edge * (1 + 1e-9)), 1, 1e-8);
    EXPECT_LT(throughput(edge * 0.5), throughput(edge));
  }
  choice.tokens = any.tokens_to_hide_step * 2;
  const FsdpEstimate hidden = EstimateFsdp(Model(), Cluster(), choice);
  EXPECT_NEAR(hidden.hfu, 0.6, 1e-12);
  // Communication-bound: E S / (3 Q phi) tokens a second, up to (N-1)/N.
  choice.tokens = any.tokens_to_hide_forward / 4;
  const FsdpEstimate waiting = EstimateFsdp(Model(), Cluster(), choice);
  EXPECT_NEAR(waiting.tokens_per_second, choice.tokens * 2e10 / (3 * 2 * Model().phi()) * 64 / 63, 1e-6);
}

TEST(Fsdp, StepGrowsWithTokensAndShrinksWithResources) {
  FsdpChoice choice{.zero = 3, .kept = 0.5, .sequence = 2048};
  double previous = 0;
  for (double tokens = 512; tokens < 1e6; tokens *= 1.3) {
    choice.tokens = tokens;
    const FsdpEstimate e = EstimateFsdp(Model(), Cluster(), choice);
    EXPECT_GE(e.step, previous);
    EXPECT_NEAR(e.mfu * (4 - 0.5) / 3, e.hfu, 1e-12);
    previous = e.step;
    for (const auto change :
         {+[](FsdpCluster& c) { c.flops_per_second *= 2; }, +[](FsdpCluster& c) { c.bytes_per_second *= 2; }}) {
      FsdpCluster better = Cluster();
      change(better);
      EXPECT_LE(EstimateFsdp(Model(), better, choice).step, e.step);
    }
    FsdpCluster late = Cluster();
    late.latency_seconds = 1e-3;
    EXPECT_GT(EstimateFsdp(Model(), late, choice).gather, e.gather);
  }
}

// HFU <= min(e, (4 - gamma)/3 x), with full duplex (4 - gamma)/2 x, at the tokens that fill the memory; the bound is
// reached where everything waits for the network.
TEST(Fsdp, UtilisationIsBoundByMemoryTimesBandwidth) {
  int reached = 0;
  for (const double bandwidth : {1e8, 1e9, 1e10, 1e11})
    for (const double kept : {0.0, 0.5, 1.0})
      for (const bool duplex : {false, true}) {
        FsdpCluster cluster = Cluster();
        cluster.bytes_per_second = bandwidth;
        FsdpChoice choice = Ideal();
        choice.kept = kept;
        choice.sequence = 1;  // every token counts
        choice.full_duplex = duplex;
        const FsdpEstimate e = EstimateFsdp(Model(), cluster, choice);
        const double bound = std::min(0.6, (4 - kept) / (duplex ? 2 : 3) * e.hidden_efficiency);
        EXPECT_LE(e.hfu, bound * (1 + 1e-12));
        reached += e.hfu > bound * (1 - 1e-12);
        // x grows with memory times bandwidth: (2 + s/(3H)) M_free S / (L H Q^2 (1 + 16 gamma) F).
        const double x = (2 + 1.0 / (3 * 2048)) * e.memory.free * bandwidth /
                         (24.0 * 2048 * 4 * (1 + 16 * kept) * 3.12e14) * 64 / 63;
        EXPECT_NEAR(e.hidden_efficiency / x, 1, 1e-4);  // whole tokens
      }
  EXPECT_GT(reached, 6);
}

TEST(Fsdp, AccumulationMultipliesAndNoSyncSavesReductions) {
  FsdpChoice once = Ideal();
  once.tokens = 512;  // waits for the network
  FsdpChoice four = once;
  four.accumulation = 4;
  const FsdpEstimate one = EstimateFsdp(Model(), Cluster(), once), all = EstimateFsdp(Model(), Cluster(), four);
  EXPECT_NEAR(all.step, 4 * one.step, 1e-12);
  EXPECT_FALSE(all.layerwise_step.has_value());
  four.no_sync = true;
  EXPECT_NEAR(EstimateFsdp(Model(), Cluster(), four).step, 4 * one.step - 3 * one.reduce, 1e-12);
  // ZeRO-1 gathers and reduces once whatever the micro-batches.
  four.zero = 1;
  const FsdpEstimate zero1 = EstimateFsdp(Model(), Cluster(), four);
  EXPECT_NEAR(zero1.step, zero1.gather + 3 * zero1.forward + 3 * zero1.backward + zero1.reduce, 1e-12);
}

TEST(Fsdp, NamesWhatLimits) {
  FsdpChoice choice = Ideal();
  choice.tokens = 256;
  EXPECT_EQ(EstimateFsdp(Model(), Cluster(), choice).bound, FsdpBound::bandwidth);
  FsdpCluster late = Cluster();
  late.latency_seconds = 1;
  EXPECT_EQ(EstimateFsdp(Model(), late, choice).bound, FsdpBound::latency);
  // Latency-bound: at least three collectives per layer.
  EXPECT_GE(EstimateFsdp(Model(), late, choice).step, 3 * 24 * 1.0);
  FsdpCluster alone = Cluster();
  alone.ranks = 1;
  const FsdpEstimate single = EstimateFsdp(Model(), alone, choice);
  EXPECT_EQ(single.bytes_sent, 0);
  EXPECT_EQ(single.gather, 0);
  EXPECT_EQ(single.bound, FsdpBound::compute);
}

TEST(Fsdp, RefusesNonsense) {
  EXPECT_THROW(EstimateFsdp(Model(), Cluster(), {.zero = 4}), UserError);
  EXPECT_THROW(EstimateFsdp(Model(), Cluster(), {.kept = 1.5}), UserError);
  FsdpCluster uneven = Cluster();
  uneven.shard_group = 7;
  EXPECT_THROW(EstimateFsdp(Model(), uneven, {}), UserError);
}

TEST(FsdpSearch, IsTheBruteForceBest) {
  FsdpGrid grid;
  grid.kept = {0, 0.25, 0.5, 1};
  grid.sequences = {1024, 4096};
  grid.ranks = {16, 64};
  for (const double bandwidth : {1e9, 5e9, 1e11}) {
    FsdpCluster cluster = Cluster();
    cluster.bytes_per_second = bandwidth;
    const FsdpSearchResult found = SearchFsdp(Model(), cluster, {}, grid);
    EXPECT_EQ(found.evaluated, 4 * 3 * 2 * 2);
    double best = 0;
    for (const int64_t ranks : grid.ranks)
      for (const double sequence : grid.sequences)
        for (const int zero : {1, 2, 3})
          for (const double kept : grid.kept) {
            FsdpCluster on = cluster;
            on.ranks = ranks;
            FsdpChoice choice{.zero = zero, .kept = kept, .sequence = sequence};
            const auto most = EstimateFsdp(Model(), on, choice).memory.max_tokens;
            // Every number of sequences, not only the largest.
            for (double tokens = sequence; tokens <= static_cast<double>(most); tokens += sequence) {
              choice.tokens = tokens;
              best = std::max(best, EstimateFsdp(Model(), on, choice).mfu);
            }
          }
    EXPECT_NEAR(found.estimate.mfu, best, 1e-12);
    EXPECT_TRUE(found.estimate.fits);
  }
}

TEST(FsdpSearch, BindingResourceIsTheOneWorthDoubling) {
  FsdpCluster slow = Cluster();
  slow.bytes_per_second = 5e7;
  const FsdpSearchResult waits = SearchFsdp(Model(), slow, {.sequence = 2048}, {});
  EXPECT_GT(waits.gain[static_cast<size_t>(FsdpBound::bandwidth)], 1.3);
  EXPECT_GT(waits.gain[static_cast<size_t>(FsdpBound::memory)], 1.3);
  EXPECT_NEAR(waits.gain[static_cast<size_t>(FsdpBound::compute)], 1, 0.05);
  FsdpCluster fast = Cluster();
  fast.bytes_per_second = 1e13;
  EXPECT_EQ(SearchFsdp(Model(), fast, {.sequence = 2048}, {}).binding, FsdpBound::compute);
  FsdpCluster small = Cluster();
  small.memory_bytes = 1e8;
  const FsdpSearchResult none = SearchFsdp(Model(), small, {.sequence = 2048}, {});
  EXPECT_FALSE(none.found);
  EXPECT_EQ(none.feasible, 0);
  EXPECT_EQ(none.binding, FsdpBound::memory);
  FsdpGrid empty;
  empty.kept.clear();
  EXPECT_THROW(SearchFsdp(Model(), fast, {}, empty), UserError);
}

TEST(Fsdp, ExplainsInAFewLines) {
  const FsdpChoice choice{.zero = 3, .kept = 0, .sequence = 2048};
  const std::string text = Explain(Model(), Cluster(), choice, EstimateFsdp(Model(), Cluster(), choice));
  EXPECT_NE(text.find("ZeRO-3 over 64 ranks: 1.21 G parameters, 24 layers, sequence 2048"), std::string::npos) << text;
  EXPECT_NE(text.find("limit: "), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
  FsdpCluster small = Cluster();
  small.memory_bytes = 1e8;
  const std::string none = Explain(Model(), small, choice, EstimateFsdp(Model(), small, choice));
  EXPECT_NE(none.find("limit: memory"), std::string::npos) << none;
  const std::string search = Explain(Model(), SearchFsdp(Model(), Cluster(), choice, {}));
  EXPECT_NE(search.find("the binding one is"), std::string::npos) << search;
}

}  // namespace
}  // namespace penstock::cost
