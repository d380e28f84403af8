// Memory events of a simulation: their maximum is the peak that the memory model predicts, they never show less than it
// does, and they end at what stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "model/gpt.h"
#include "model/partition.h"
#include "simulate/prices.h"
#include "simulate/shapes.h"
#include "simulate/simulate.h"

namespace penstock::simulate {
namespace {

using cost::BytesByClass;
using schedule::Builder;
using schedule::PipelineShape;

constexpr int64_t kLength = 8, kFloat = 4;

struct Case {
  model::ModelSpec spec;
  model::Partition partition;
  std::vector<model::ModelUnit> units;
  schedule::Schedule schedule;
  cost::MemoryEstimate memory;

  Case(const Builder& builder, const PipelineShape& shape, int data, int layers, const std::string& cut, bool recompute,
       bool reproducible, int optimizer_states = 2) {
    model::GptConfig config;
    config.layers = layers;
    config.hidden = 16;
    config.heads = 2;
    config.vocabulary = 32;
    config.context = kLength;
    config.tied = false;
    spec = model::BuildGptSpec(config);
    partition = model::MakePartition(spec, cut, shape.stages());
    units = model::MakeUnits(spec, partition);
    schedule::LowerSpec lower = SpecOf(shape);
    lower.data = data;
    lower.micro_batches *= data;
    for (const auto& unit : units) lower.unit_bytes.push_back(unit.numel * kFloat);
    for (int s = 0; s < shape.stages(); ++s) lower.stage_has_parameters.push_back(!units[s].uses.empty());
    for (int s = 0; s + 1 < shape.stages(); ++s)
      lower.boundary_bytes.push_back(
          model::BoundaryBytes(spec.layers[partition.first[s + 1] - 1], 1, kLength, model::Precision::fp32));
    if (recompute) lower.recompute.assign(shape.stages(), true);
    schedule = Lower(builder, lower);
    memory = cost::EstimateMemory({.spec = spec,
                                   .partition = partition,
                                   .units = units,
                                   .schedule = schedule,
                                   .samples = 1,
                                   .length = kLength,
                                   .precision = model::Precision::fp32,
                                   .optimizer_states = optimizer_states,
                                   .reproducible = reproducible,
                                   .checkpoints = false,
                                   .final_state = false,
                                   .stack = std::nullopt,
                                   .trace = true});
  }
};

int64_t Sum(const BytesByClass& bytes) {
  int64_t sum = 0;
  for (const int64_t b : bytes) sum += b;
  return sum;
}

struct Shown {
  int64_t peak = 0;
  BytesByClass by_class{}, last{};
};

// As a report reads them: event by event.
std::vector<Shown> Replayed(const schedule::Timeline& timeline) {
  std::vector<Shown> ranks(timeline.num_ranks);
  std::vector<double> now(timeline.num_ranks, 0);
  for (const auto& event : timeline.memory) {
    EXPECT_GE(event.time, now[event.rank]);
    now[event.rank] = event.time;
    Shown& rank = ranks[event.rank];
    const auto c = static_cast<size_t>(event.buffer_class);
    rank.last[c] = event.live_bytes;
    rank.by_class[c] = std::max(rank.by_class[c], event.live_bytes);
    rank.peak = std::max(rank.peak, Sum(rank.last));
  }
  return ranks;
}

TEST(MemoryOverTime, PeaksAndEnds) {
  int64_t ranks = 0;
  int turn = 0;
  for (const auto& [name, builder] : Registry<Builder>::All())
    for (const int p : {1, 2, 3, 4})
      for (const int m : {1, 4, 7})
        for (const std::string& placement : builder.placements) {
          const int v = placement == "linear" ? 1 : builder.default_chunks;
          const PipelineShape shape{p, v, m, placement};
          if (Refused(builder, shape)) continue;
          ++turn;
          const Case c(builder, shape, 1 + turn % 2, std::max(4, p * v), "even", turn % 3 == 0, turn % 5 == 0);
          const ArbitraryPrices prices(static_cast<uint64_t>(turn), true);
          const Simulation simulation = Simulate({.schedule = c.schedule, .costs = prices, .memory = &c.memory});
          const std::vector<Shown> shown = Replayed(simulation.timeline);
          for (int r = 0; r < c.schedule.num_ranks(); ++r) {
            const cost::RankMemory& predicted = c.memory.ranks[r];
            const std::string where = fmt::format("{} rank {}", Describe(builder, shape), r);
            EXPECT_EQ(shown[r].peak, predicted.peak()) << where;
            int64_t kept = predicted.persistent;
            for (int k = 0; k < kBufferClassCount; ++k) {
              // Workspaces are counted as activations, what is inside an action only in the sum.
              const auto k_class = static_cast<BufferClass>(k);
              const bool inside = k_class == BufferClass::gradient;
              if (!inside) {
                EXPECT_GE(shown[r].by_class[k], predicted.peak_by_class[k]) << where << ' ' << Name(k_class);
              }
              if (inside || k_class == BufferClass::boundary) {
                EXPECT_EQ(shown[r].last[k], 0) << where;
              }
              if (k_class == BufferClass::message) kept += predicted.before[k];
            }
            // Tokens and labels of its micro-batches, and the channels, stay until the step is over.
            const int64_t tokens = shown[r].last[static_cast<size_t>(BufferClass::activation)];
            EXPECT_EQ(tokens, m * kLength * 16) << where;
            EXPECT_EQ(Sum(shown[r].last), kept + tokens) << where;
            ++ranks;
          }
        }
  std::cout << "  " << ranks << " ranks\n";
  EXPECT_GT(ranks, 400);
}

// cases.md B3: 8 blocks as 1, 2, 2, 3. Every rank has its own layers' bytes; the heaviest is not the mean.
TEST(MemoryOverTime, UnevenStagesAreNotAveraged) {
  const Case c(Registry<Builder>::Find("1f1b"), {4, 1, 4, {}}, 1, 8, "1,2,2,3", false, false, 0);
  const PricesByKind<double> prices(1, 2, 0, 0, 0);
  const Simulation simulation = Simulate({.schedule = c.schedule, .costs = prices, .memory = &c.memory});
  int64_t heaviest = 0, all = 0;
  for (int stage = 0; stage < 4; ++stage) {
    int64_t bytes = 0;
    for (int l = c.partition.first[stage]; l < c.partition.first[stage + 1]; ++l)
      for (const int p : c.spec.layers[l].parameters) bytes += c.spec.parameters[p].numel() * kFloat;
    const auto shown = Replayed(simulation.timeline);
    EXPECT_EQ(c.memory.ranks[stage].persistent, bytes);
    EXPECT_EQ(shown[stage].last[static_cast<size_t>(BufferClass::parameter)], bytes);
    heaviest = std::max(heaviest, bytes);
    all += bytes;
  }
  EXPECT_EQ(c.memory.ranks[3].persistent, heaviest);
  EXPECT_GT(heaviest, all / 4 * 5 / 4);  // a mean would be a quarter too low
  const auto peak = [](const cost::RankMemory& rank) { return rank.total(); };
  const int largest = c.memory.largest_rank();
  for (const cost::RankMemory& rank : c.memory.ranks) EXPECT_LE(peak(rank), peak(c.memory.ranks[largest]));
}

}  // namespace
}  // namespace penstock::simulate
