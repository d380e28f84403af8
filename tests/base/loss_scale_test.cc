#include "base/loss_scale.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "base/error.h"

namespace penstock {
namespace {

using Step = LossScale::Step;

LossScaleConfig Small() {
  LossScaleConfig config;
  config.enabled = true;
  config.initial = 16;
  config.growth = 4;
  config.backoff = 0.5;
  config.interval = 3;
  config.minimum = 2;
  config.maximum = 64;
  config.max_skipped = 4;
  return config;
}

// The scales that the steps are computed with, by the rules written out.
std::vector<double> Scales(LossScale& scale, const std::vector<Step>& steps) {
  std::vector<double> values;
  for (const Step step : steps) {
    values.push_back(scale.value());
    scale.After(step);
  }
  return values;
}

constexpr Step kGood = Step::applied, kBad = Step::gradient_not_finite, kLoss = Step::loss_not_finite;

TEST(LossScale, GrowsAfterTheIntervalAndBacksOff) {
  LossScale scale(Small());
  EXPECT_EQ(
      Scales(scale, {kGood, kGood, kGood, kGood, kGood, kBad, kGood, kGood, kGood, kGood, kGood, kGood, kGood}),
      (std::vector<double>{16, 16, 16, 64, 64, 64, 32, 32, 32, 64, 64, 64, 64}));  // 128 would be above the maximum
  EXPECT_EQ(scale.state(), (LossScaleState{.scale = 64, .clean = 1, .skipped_in_a_row = 0, .skipped = 1}));
}

// Case F1: at the minimum it stays, and somebody must end the run.
TEST(LossScale, EndsAtTheMinimum) {
  LossScale scale(Small());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(scale.exhausted());
    scale.After(kBad);
  }
  EXPECT_EQ(scale.value(), 2);
  EXPECT_FALSE(scale.exhausted());
  scale.After(kBad);
  EXPECT_EQ(scale.value(), 2);
  EXPECT_TRUE(scale.exhausted());
  scale.After(kGood);
  EXPECT_FALSE(scale.exhausted());
  EXPECT_EQ(scale.state().skipped, 4);
}

TEST(LossScale, ALossThatIsNotFiniteSaysNothingAboutTheScale) {
  LossScale scale(Small());
  EXPECT_EQ(Scales(scale, {kGood, kGood, kLoss, kGood, kGood, kGood, kGood}),
            (std::vector<double>{16, 16, 16, 16, 16, 16, 64}));
  EXPECT_EQ(scale.state().skipped, 1);
}

TEST(LossScale, StaticAndOff) {
  LossScaleConfig config = Small();
  config.mode = "static";
  LossScale fixed(config);
  EXPECT_EQ(Scales(fixed, {kBad, kBad, kGood, kGood, kGood, kGood}), std::vector<double>(6, 16));
  config.enabled = false;
  LossScale off(config);
  EXPECT_EQ(Scales(off, {kBad, kBad, kBad, kBad, kBad}), std::vector<double>(5, 1));
  EXPECT_FALSE(off.exhausted());
  EXPECT_EQ(off.state().skipped_in_a_row, 5);
}

// Whatever happened, going on from a state is going on.
TEST(LossScale, ContinuesFromAnyState) {
  std::vector<Step> steps;
  uint64_t x = 3;
  for (int i = 0; i < 200; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    steps.push_back((x >> 60) < 12 ? kGood : (x >> 60) < 15 ? kBad : kLoss);
  }
  LossScale straight(Small());
  for (const Step step : steps) {
    LossScale again(Small(), straight.state());
    EXPECT_EQ(again.value(), straight.value());
    again.After(step);
    straight.After(step);
    EXPECT_EQ(again.state(), straight.state());
    EXPECT_TRUE(IsPowerOfTwo(straight.value()));
  }
  EXPECT_GT(straight.state().skipped, 20);
  for (const LossScaleState& bad : {LossScaleState{.scale = 3}, LossScaleState{.scale = 0}, LossScaleState{.scale = -2},
                                    LossScaleState{.scale = std::numeric_limits<double>::infinity()},
                                    LossScaleState{.clean = -1}, LossScaleState{.skipped_in_a_row = 2, .skipped = 1}})
    EXPECT_THROW(LossScale(Small(), bad), UserError);
}

TEST(LossScale, PowersOfTwo) {
  for (const double yes : {1.0, 2.0, 0.5, 65536.0, 0x1p-40}) EXPECT_TRUE(IsPowerOfTwo(yes)) << yes;
  for (const double no : {0.0, -1.0, 3.0, 65535.0, 0.3, std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(IsPowerOfTwo(no)) << no;
}

TEST(LossScale, Keys) {
  const auto fault = [](bool enabled, const std::vector<std::string>& assignments) -> std::string {
    LossScaleConfig c;
    config::Config root;
    root.Add("numerics", [&](config::Section& s) {
      c.Declare(
          s, [enabled] { return enabled; }, "numerics.precision = 'fp16'");
    });
    try {
      for (const std::string& a : assignments) root.Set(a);
      root.Finish();
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault(true, {}), "");
  EXPECT_EQ(fault(false, {}), "");
  EXPECT_EQ(fault(true, {"numerics.loss_scale_initial=1024", "numerics.loss_scale_min=1"}), "");
  EXPECT_NE(fault(true, {"numerics.loss_scale_initial=1000"}).find("1000 is no power of two"), std::string::npos);
  EXPECT_NE(fault(true, {"numerics.loss_scale_backoff=0.3"}).find("0.3 is no power of two"), std::string::npos);
  EXPECT_NE(fault(true, {"numerics.loss_scale_min=131072"}).find("the initial scale 65536 is not between"),
            std::string::npos);
  EXPECT_NE(fault(false, {"numerics.loss_scale_initial=1024"}).find("numerics.precision = 'fp16'"), std::string::npos);
  EXPECT_NE(fault(true, {"numerics.loss_scale='static'", "numerics.loss_scale_growth=4"}).find("'dynamic'"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock
