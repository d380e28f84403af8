// Predicted against measured.
#include "report/gap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sample.h"

namespace penstock::report {
namespace {

using schedule::Kind;
using schedule::Timeline;

double SumOfReasons(const Gap& gap) {
  double sum = gap.other_path;
  for (const GapReason& r : gap.reasons) sum += r.seconds;
  return sum;
}

const ClassGap& ClassOf(const Gap& gap, const std::string& name) {
  return *std::find_if(gap.classes.begin(), gap.classes.end(), [&](const ClassGap& c) { return c.name == name; });
}

TEST(CompareTimelines, TheSameTwiceIsNoGap) {
  const auto s = PipelineOf("1f1b", 4, 1, 8);
  const Timeline t = Replayed(s, Rational(1, 4));
  const Gap gap = CompareTimelines(t, t, s.graph);
  EXPECT_EQ(gap.difference(), 0);
  EXPECT_EQ(gap.relative_error(), 0);
  EXPECT_EQ(gap.unmatched, 0);
  EXPECT_NEAR(SumOfReasons(gap), 0, 1e-12);
  for (const ClassGap& c : gap.classes) EXPECT_EQ(c.difference(), 0) << c.name;
}

// GPipe by hand (bubbles_test.cc): with forwards of stage 1 at 1.5 the path is F0 | F0 F1 B0 | B0 B1, both of them on
// it: 9.5 + 2 * 0.5.
TEST(CompareTimelines, ASlowerStageIsNamed) {
  const auto s = PipelineOf("gpipe", 2, 1, 2);
  const Timeline predicted = Replayed(s, Rational(1, 4));
  Timeline measured = predicted;
  for (auto& e : measured.events) {
    const bool forward = e.action.key.kind == Kind::forward;
    const int m = e.action.key.micro_batch;
    if (e.rank == 1) {
      if (forward && m == 0) e.end += 0.5;
      if (forward && m == 1) e.start += 0.5, e.end += 1;
      if (!forward) e.start += 1, e.end += 1;
    } else if (!forward) {
      e.start += 1;
      e.end += 1;
    }
  }
  const Gap gap = CompareTimelines(predicted, measured, s.graph);
  EXPECT_DOUBLE_EQ(gap.predicted_step, 9.5);
  EXPECT_DOUBLE_EQ(gap.measured_step, 10.5);
  EXPECT_DOUBLE_EQ(gap.relative_error(), -1 / 10.5);
  ASSERT_EQ(gap.reasons.size(), 1u);
  EXPECT_EQ(gap.reasons[0].text, "forward of stage 1 on rank 1 took 50 % longer than predicted (+1.00 s)");
  EXPECT_DOUBLE_EQ(gap.reasons[0].seconds, 1);
  EXPECT_NEAR(gap.other_path, 0, 1e-12);
  EXPECT_EQ(ClassOf(gap, "forward").count, 4);
  EXPECT_DOUBLE_EQ(ClassOf(gap, "forward").difference(), 1);
  EXPECT_DOUBLE_EQ(ClassOf(gap, "backward").difference(), 0);
  EXPECT_EQ(gap.ranks[0].waited_for, 1);
  EXPECT_DOUBLE_EQ(gap.ranks[0].waited_longer, 1);
  EXPECT_NE(gap.ToText().find("rank 0 waited 1.00 s longer for rank 1"), std::string::npos) << gap.ToText();
}

// What is not on the path of the prediction may become slower for a while at no cost.
TEST(CompareTimelines, AnotherLongestPathIsSaid) {
  const auto timeline = [](double first, double second) {
    Timeline t;
    t.num_ranks = 2;
    for (const int32_t r : {0, 1}) {
      schedule::Event e;
      e.action.key.micro_batch = r;
      e.rank = r;
      e.end = r == 0 ? first : second;
      t.events.push_back(e);
    }
    return t;
  };
  const Gap gap = CompareTimelines(timeline(10, 8), timeline(10, 11), schedule::StageGraph::Chain(1));
  EXPECT_DOUBLE_EQ(gap.difference(), 1);
  ASSERT_EQ(gap.reasons.size(), 1u);
  EXPECT_DOUBLE_EQ(gap.reasons[0].seconds, 3);  // rank 1
  EXPECT_DOUBLE_EQ(gap.other_path, -2);
  EXPECT_NE(gap.ToText().find("not explained"), std::string::npos);
}

// Messages of 0.5 instead of 0.25: two of them are on the path.
TEST(CompareTimelines, LinksAreCompared) {
  const auto s = PipelineOf("gpipe", 2, 1, 2);
  Timeline predicted = Replayed(s, Rational(1, 4)), measured = Replayed(s, Rational(1, 2));
  AddMessages(predicted, s, 0.25, 1000);
  AddMessages(measured, s, 0.5, 1000);
  const Gap gap = CompareTimelines(predicted, measured, s.graph);
  EXPECT_DOUBLE_EQ(gap.difference(), 0.5);
  EXPECT_NEAR(SumOfReasons(gap), gap.difference(), 1e-12);
  EXPECT_DOUBLE_EQ(gap.other_path, 0);
  ASSERT_EQ(gap.reasons.size(), 2u);
  EXPECT_DOUBLE_EQ(gap.reasons[0].seconds, 0.25);
  EXPECT_NE(gap.reasons[0].text.find("messages from rank"), std::string::npos);
  ASSERT_EQ(gap.links.size(), 2u);
  EXPECT_EQ(gap.links[0].from, 0);
  EXPECT_EQ(gap.links[0].messages, 2);
  EXPECT_EQ(gap.links[0].bytes, 2000);
  EXPECT_EQ(gap.links[0].compared, 2);
  EXPECT_DOUBLE_EQ(gap.links[0].predicted, 0.5);
  EXPECT_DOUBLE_EQ(gap.links[0].measured, 1);
}

TEST(CompareTimelines, ReasonsOfANoisyRunAddUpAndTheFirstStepIsLeftOut) {
  for (const std::string builder : {"1f1b", "gpipe", "zb-h1"})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto s = PipelineOf(builder, 4, 1, 8);
      const Timeline predicted = Scaled(Replayed(s, Rational(1, 10)), 0.01);
      const Timeline measured = LikeMeasured(s, 0.01, 0.002, 2, 1.3, 5, seed);
      const Gap gap = CompareTimelines(predicted, measured, s.graph);
      EXPECT_EQ(gap.measured_steps, 4);
      EXPECT_GT(gap.step, 0);
      EXPECT_GT(gap.difference(), 0);
      EXPECT_NEAR(SumOfReasons(gap), gap.difference(), 1e-9) << builder << " " << seed;
      EXPECT_NE(gap.reasons[0].text.find("of stage 2 on rank 2 took"), std::string::npos) << gap.ToText();
      const std::string text = gap.ToText();
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 16) << text;
      const auto json = nlohmann::json::parse(gap.ToJson());
      EXPECT_EQ(json.at("ranks").size(), 4u);
      EXPECT_DOUBLE_EQ(json.at("measured_step").get<double>(), gap.measured_step);
    }
}

TEST(CompareTimelines, AnotherScheduleIsSaidAndNothingIsNothing) {
  const auto a = PipelineOf("gpipe", 2, 1, 2), b = PipelineOf("zb-h1", 2, 1, 2);
  const Gap gap = CompareTimelines(Replayed(a), Replayed(b), b.graph);
  EXPECT_GT(gap.unmatched, 0);
  EXPECT_NE(gap.ToText().find("another schedule"), std::string::npos);
  EXPECT_EQ(CompareTimelines({}, Replayed(a), a.graph).difference(), 0);
  EXPECT_EQ(CompareTimelines(Replayed(a), {}, a.graph).relative_error(), 0);
}

TEST(TypicalStepOf, StartsAtZeroWithWhatWasAliveBefore) {
  const auto s = PipelineOf("1f1b", 2, 1, 4);
  Timeline t = LikeMeasured(s, 0.01, 0.001, 0, 1, 3, 1);
  AddMemory(t, 1000);
  const Timeline one = TypicalStepOf(t, true);
  double first = 1e9;
  for (const auto& e : one.events) {
    first = std::min(first, e.start);
    EXPECT_EQ(e.step, one.events[0].step);
  }
  EXPECT_EQ(first, 0);
  EXPECT_NE(one.events[0].step, 0);
  ASSERT_FALSE(one.memory.empty());
  EXPECT_EQ(one.memory[0].time, 0);
  EXPECT_TRUE(std::any_of(one.memory.begin(), one.memory.end(), [](const auto& e) {
    return e.buffer_class == BufferClass::parameter && e.live_bytes == 5000 && e.time == 0;
  }));
}

}  // namespace
}  // namespace penstock::report
