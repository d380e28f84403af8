// What every registered builder promises, over grids of shapes and costs: its order finishes, and its closed forms
// equal the exact replay wherever they are declared. Counted: a builder none of whose closed forms applied anywhere
// fails.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "simulate/shapes.h"

namespace penstock::simulate {
namespace {

using schedule::Builder;
using schedule::PipelineShape;
using schedule::Schedule;
using schedule::UniformCosts;

// Equal, unequal in every order, with zeros and with fractions.
std::vector<UniformCosts> CostGrid() {
  std::vector<UniformCosts> grid;
  for (const auto& [f, i, w] :
       std::vector<std::array<int, 3>>{{1, 1, 1},  {1, 2, 1},  {2, 1, 1}, {1, 1, 2}, {3, 1, 2}, {1, 3, 2}, {2, 3, 1},
                                       {3, 2, 1},  {1, 2, 3},  {2, 1, 3}, {5, 6, 4}, {6, 5, 4}, {2, 2, 1}, {5, 7, 4},
                                       {10, 9, 1}, {9, 10, 1}, {5, 5, 4}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}})
    grid.push_back({Rational(f, 3), Rational(i, 3), Rational(w, 3), 0});
  return grid;
}

TEST(BuilderContract, FinishesForEveryNumberOfMicroBatches) {
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    int shapes = 0;
    ForEachShape(builder, 8, 20, [&](const PipelineShape& shape) {
      ++shapes;
      const Schedule schedule = ComputeOnly(builder, shape);
      EXPECT_NO_THROW(ReplayInOrder<Rational>(schedule, schedule::UniformActionCosts({}))) << Describe(builder, shape);
      // Each stage and micro-batch once forward, and once with each half of the backward.
      const int64_t kinds = builder.splits_backward ? 3 : 2;
      EXPECT_EQ(schedule.num_actions(), kinds * shape.stages() * shape.micro_batches) << Describe(builder, shape);
      for (int r = 0; r < shape.ranks; ++r)
        for (const auto& a : schedule.ranks[r])
          ASSERT_EQ(schedule.route.rank_of(a.key.unit.stage, a.key.micro_batch), r) << Describe(builder, shape);
    });
    EXPECT_GE(shapes, 8 * 20) << name << " refuses nearly everything";
  }
}

TEST(BuilderContract, ClosedFormsEqualTheReplay) {
  const auto costs = CostGrid();
  int64_t compared = 0;
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    int64_t exact = 0, skipped = 0;
    const auto compare = [&](const std::optional<Rational>& closed, const Rational& replayed, const char* what,
                             const PipelineShape& shape, const UniformCosts& c) {
      if (!closed) {
        ++skipped;
        return;
      }
      ++exact;
      EXPECT_EQ(closed->ToString(), replayed.ToString())
          << what << " of " << Describe(builder, shape) << " at " << c.forward.ToString() << ","
          << c.backward_input.ToString() << "," << c.backward_weight.ToString();
    };
    int turn = 0;
    ForEachShape(builder, 6, 13, [&](const PipelineShape& shape) {
      const Schedule schedule = ComputeOnly(builder, shape);
      // Every shape with a few costs, all costs over the shapes: the product would take minutes.
      for (int k = 0; k < 3; ++k) {
        const UniformCosts& c = costs[turn++ % costs.size()];
        const auto replay = ReplayInOrder<Rational>(schedule, schedule::UniformActionCosts(c));
        compare(builder.closed_forms.makespan(shape, c), replay.makespan, "makespan", shape, c);
        compare(builder.closed_forms.max_span(shape, c), replay.max_span, "max_span", shape, c);
        if (k == 0)
          for (int d = 0; d < shape.ranks; ++d)
            compare(builder.closed_forms.peak_micro_batches(shape, d), replay.peak_micro_batches[d], "peak", shape, c);
      }
    });
    std::cout << fmt::format("  {}: {} exact, {} outside the domain\n", name, exact, skipped);
    EXPECT_GT(exact, 0) << name << ": every closed form was skipped";
    compared += exact;
  }
  EXPECT_GT(compared, 10000);
}

// The same, with all costs and larger shapes.
TEST(LongBuilderContract, ClosedFormsEqualTheReplayOfLargeShapes) {
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    int64_t exact = 0;
    ForEachShape(builder, 8, 32, [&](const PipelineShape& shape) {
      const Schedule schedule = ComputeOnly(builder, shape);
      for (const UniformCosts& c : CostGrid()) {
        const auto makespan = builder.closed_forms.makespan(shape, c);
        const auto span = builder.closed_forms.max_span(shape, c);
        if (!makespan && !span) continue;
        const auto replay = ReplayInOrder<Rational>(schedule, schedule::UniformActionCosts(c));
        EXPECT_EQ(makespan.value_or(replay.makespan).ToString(), replay.makespan.ToString())
            << Describe(builder, shape);
        EXPECT_EQ(span.value_or(replay.max_span).ToString(), replay.max_span.ToString()) << Describe(builder, shape);
        exact += makespan.has_value() + span.has_value();
      }
      const auto replay = ReplayInOrder<Rational>(schedule, schedule::UniformActionCosts({}));
      for (int d = 0; d < shape.ranks; ++d) {
        const Rational replayed = replay.peak_micro_batches[d];
        EXPECT_EQ(builder.closed_forms.peak_micro_batches(shape, d).value_or(replayed).ToString(), replayed.ToString())
            << Describe(builder, shape);
      }
    });
    std::cout << fmt::format("  {}: {} exact\n", name, exact);
    EXPECT_GT(exact, 0) << name;
  }
}

TEST(BuilderContract, NoClosedFormWithLatency) {
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    const PipelineShape shape{2, builder.default_chunks, 4, {}};
    EXPECT_FALSE(builder.closed_forms.makespan(shape, {1, 1, 1, 1})) << name;
    EXPECT_FALSE(builder.closed_forms.max_span(shape, {1, 1, 1, 1})) << name;
  }
}

}  // namespace
}  // namespace penstock::simulate
