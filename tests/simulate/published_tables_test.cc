// Every cell of the tables that the schedules are held to: makespans and peaks at unit costs, the latency line
// (pipeline_schedules.md section 7), and layered gradient accumulation (its digest, section 3.4).
#include <gtest/gtest.h>

#include <vector>

#include "simulate/replay_of_builder.h"

namespace penstock::simulate {
namespace {

using schedule::PipelineShape;
using schedule::UniformCosts;

Rational R(std::string_view text) { return Rational::Parse(text); }

struct Cell {
  const char* builder;
  int ranks, chunks, micro_batches;
  const char* makespan;
  const char* max_span;
};

TEST(PublishedTables, MakespanAndSpanAtUnitCosts) {
  const std::vector<Cell> cells = {
      {"gpipe", 4, 1, 8, "33", "33"},
      {"1f1b", 4, 1, 8, "33", "33"},
      {"interleaved-1f1b", 4, 2, 8, "57/2", "57/2"},
      {"interleaved-1f1b", 4, 3, 8, "27", "27"},
      {"breadth-first", 4, 2, 8, "57/2", "57/2"},
      {"zb-h1", 4, 1, 8, "27", "27"},
      {"zb-h2", 4, 1, 8, "27", "24"},
      {"zb-v", 4, 2, 8, "51/2", "24"},
      {"gpipe", 4, 1, 12, "45", "45"},
      {"1f1b", 4, 1, 12, "45", "45"},
      {"interleaved-1f1b", 4, 2, 12, "81/2", "81/2"},
      {"interleaved-1f1b", 4, 3, 12, "39", "39"},
      {"breadth-first", 4, 2, 12, "81/2", "81/2"},
      {"zb-h1", 4, 1, 12, "39", "39"},
      {"zb-h2", 4, 1, 12, "39", "36"},
      {"zb-v", 4, 2, 12, "75/2", "36"},
      {"gpipe", 8, 1, 24, "93", "93"},
      {"1f1b", 8, 1, 24, "93", "93"},
      {"interleaved-1f1b", 8, 2, 24, "165/2", "165/2"},
      {"interleaved-1f1b", 8, 3, 24, "79", "79"},
      {"breadth-first", 8, 2, 24, "165/2", "165/2"},
      {"zb-h1", 8, 1, 24, "79", "79"},
      {"zb-h2", 8, 1, 24, "79", "72"},
      {"zb-v", 8, 2, 24, "151/2", "72"},
  };
  for (const Cell& c : cells) {
    const auto replay =
        ReplayBuilder(c.builder, {c.ranks, c.chunks, c.micro_batches, {}}, UniformCosts::PerRank(1, 1, 1, c.chunks));
    EXPECT_EQ(replay.makespan, R(c.makespan)) << c.builder << " " << c.ranks << "," << c.micro_batches;
    EXPECT_EQ(replay.max_span, R(c.max_span)) << c.builder << " " << c.ranks << "," << c.micro_batches;
    // Work per rank is 3 per micro-batch; bubble / (work + bubble) with the barrier at the end.
    EXPECT_EQ(replay.bubble_fraction, (R(c.makespan) - Rational(3 * c.micro_batches)) / R(c.makespan));
  }
}

TEST(PublishedTables, PeakMicroBatchesOfFourRanksAndEightMicroBatches) {
  struct Peaks {
    const char* builder;
    int chunks;
    std::vector<Rational> per_rank;
  };
  const std::vector<Peaks> rows = {
      {"gpipe", 1, {8, 8, 8, 8}},
      {"1f1b", 1, {4, 3, 2, 1}},
      {"interleaved-1f1b", 2, {R("5.5"), R("4.5"), R("3.5"), R("2.5")}},
      {"interleaved-1f1b", 3, {5, R("13/3"), R("11/3"), 3}},
      {"breadth-first", 2, {8, 8, 8, 8}},
      {"zb-h1", 1, {4, 4, 4, 4}},
      {"zb-h2", 1, {7, 7, 7, 7}},
      {"zb-v", 2, {4, 4, 4, 4}},
  };
  for (const Peaks& row : rows)
    EXPECT_EQ(ReplayBuilder(row.builder, {4, row.chunks, 8, {}}, {}).peak_micro_batches, row.per_rank) << row.builder;
}

TEST(PublishedTables, HopLatency) {
  // p = 4, m = 16, T_F = 1, T_B = 2.
  struct Line {
    const char* builder;
    const char* hop0;
    const char* hop_half;
    const char* hop1;
  };
  for (const Line& line :
       {Line{"1f1b", "57", "71", "85"}, {"gpipe", "57", "60", "63"}, {"eager-1f1b", "57", "60", "63"}}) {
    UniformCosts costs;
    EXPECT_EQ(ReplayBuilder(line.builder, {4, 1, 16, {}}, costs).makespan, R(line.hop0)) << line.builder;
    costs.hop = R("0.5");
    EXPECT_EQ(ReplayBuilder(line.builder, {4, 1, 16, {}}, costs).makespan, R(line.hop_half)) << line.builder;
    costs.hop = 1;
    EXPECT_EQ(ReplayBuilder(line.builder, {4, 1, 16, {}}, costs).makespan, R(line.hop1)) << line.builder;
  }
}

TEST(PublishedTables, LayeredGradientAccumulation) {
  struct Line {
    int layers, ranks, micro_batches, ideal, flush, contiguous, modular;
  };
  // tf = 1, tb = 2 per layer; a rank has K = L / P layers.
  for (const Line& line : {Line{8, 4, 4, 24, 42, 69, 33},
                           {16, 4, 4, 48, 84, 165, 57},
                           {16, 4, 8, 96, 132, 321, 105},
                           {16, 4, 2, 24, 60, 87, 51},
                           {24, 4, 16, 288, 342, 1017, 297}}) {
    const PipelineShape shape{line.ranks, line.layers / line.ranks, line.micro_batches, {}};
    const auto makespan = [&](const char* builder, const char* placement) {
      PipelineShape placed = shape;
      placed.placement = placement;
      const auto replay = ReplayBuilder(builder, placed, {});
      // The ideal is the work of a rank, with no bubble.
      EXPECT_EQ((Rational(1) - replay.bubble_fraction) * replay.makespan, Rational(line.ideal)) << builder;
      return replay.makespan;
    };
    EXPECT_EQ(makespan("gpipe", "block"), Rational(line.flush)) << line.layers << " " << line.micro_batches;
    EXPECT_EQ(makespan("1f1b", "block"), Rational(line.flush));
    EXPECT_EQ(makespan("layered", "block"), Rational(line.contiguous));
    EXPECT_EQ(makespan("layered", "loop"), Rational(line.modular));
    EXPECT_EQ(makespan("breadth-first", "loop"), Rational(line.modular));
  }
}

}  // namespace
}  // namespace penstock::simulate
