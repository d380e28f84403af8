// The whole simulator, lowered schedule to timeline with memory, against the closed forms of every builder: makespan,
// span and peak of kept micro-batches, exactly, at costs that a double holds exactly.
#include <gtest/gtest.h>

#include <iostream>

#include "simulate/shapes.h"
#include "simulate/simulate.h"
#include "simulate/unit_model.h"

namespace penstock::simulate {
namespace {

using schedule::Builder;
using schedule::PipelineShape;
using schedule::UniformCosts;

// Largest number of units that the memory events of each rank show at once.
std::vector<int64_t> PeakUnits(const schedule::Timeline& timeline) {
  std::vector<int64_t> peaks(timeline.num_ranks);
  for (const auto& event : timeline.memory)
    if (event.buffer_class == BufferClass::activation)
      peaks[event.rank] = std::max(peaks[event.rank], event.live_bytes / kUnitBytes);
  return peaks;
}

TEST(ClosedForms, OfTheWholeSimulation) {
  const std::vector<UniformCosts> costs = {{1, 1, 1, 0}, {2, 2, 2, 0}, {1, 2, 1, 0},
                                           {3, 2, 1, 0}, {2, 3, 1, 0}, {5, 6, 4, 0}};
  int64_t shapes = 0, makespans = 0, spans = 0, peaks = 0;
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    int64_t of_builder = 0;
    ForEachShape(builder, 7, 12, [&, &builder = builder](const PipelineShape& shape) {
      schedule::LowerSpec spec = SpecOf(shape);
      spec.stage_has_parameters.assign(shape.stages(), false);
      const schedule::Schedule schedule = Lower(builder, spec);
      const UnitModel model(shape.stages());
      const cost::MemoryEstimate memory = model.Estimate(schedule);
      const UniformCosts& c = costs[static_cast<size_t>(shapes) % costs.size()];
      const schedule::UniformSeconds prices(c);
      const Simulation simulation = Simulate({.schedule = schedule, .costs = prices, .memory = &memory});
      if (const auto makespan = builder.closed_forms.makespan(shape, c)) {
        EXPECT_EQ(simulation.makespan, makespan->ToDouble()) << Describe(builder, shape);
        ++makespans, ++of_builder;
      }
      if (const auto span = builder.closed_forms.max_span(shape, c)) {
        double longest = 0;
        std::vector<double> first(shape.ranks, -1), last(shape.ranks, 0);
        for (const auto& event : simulation.timeline.events) {
          if (!IsComputeKind(event.action.key.kind)) continue;
          if (first[event.rank] < 0) first[event.rank] = event.start;
          last[event.rank] = std::max(last[event.rank], event.end);
        }
        for (int r = 0; r < shape.ranks; ++r) longest = std::max(longest, last[r] - first[r]);
        EXPECT_EQ(longest, span->ToDouble()) << Describe(builder, shape);
        ++spans;
      }
      const std::vector<int64_t> units = PeakUnits(simulation.timeline);
      for (int d = 0; d < shape.ranks; ++d) {
        const auto peak = builder.closed_forms.peak_micro_batches(shape, d);
        if (!peak) continue;
        EXPECT_EQ(Rational(units[d], shape.chunks), *peak) << Describe(builder, shape) << " rank " << d;
        EXPECT_EQ(memory.ranks[d].peak_by_class[static_cast<size_t>(BufferClass::activation)] / kUnitBytes, units[d]);
        ++peaks;
      }
      EXPECT_EQ(simulation.actions, schedule.num_actions());
      ++shapes;
    });
    EXPECT_GT(of_builder, 0) << name << ": no closed form applied";
  }
  std::cout << fmt::format("  {} shapes: {} makespans, {} spans, {} peaks\n", shapes, makespans, spans, peaks);
  EXPECT_GT(shapes, 3000);
  EXPECT_GT(makespans, 2000);
  EXPECT_GT(peaks, 5000);
}

// cases.md C9: p = 4, m = 8, equal stages: (p - 1) / (m + p - 1) of the time nothing is computed, here 3 / 11, exactly;
// and so for other sizes.
TEST(ClosedForms, BubbleShareOfOneForwardOneBackward) {
  for (const auto& [p, m] : std::vector<std::pair<int, int>>{{4, 8}, {2, 8}, {8, 32}, {3, 5}}) {
    const schedule::Schedule schedule = Lower(Registry<Builder>::Find("1f1b"), SpecOf({p, 1, m, {}}));
    const schedule::UniformSeconds prices({1, 1, 1, 0});
    const Simulation simulation = Simulate({.schedule = schedule, .costs = prices});
    EXPECT_NEAR(simulation.bubble_fraction, (p - 1.0) / (m + p - 1), 1e-12);
  }
}

}  // namespace
}  // namespace penstock::simulate
