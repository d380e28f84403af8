#include "optim/learning_rate.h"

#include <gtest/gtest.h>

namespace penstock::optim {
namespace {

TEST(LearningRate, WarmUpThenCosine) {
  const OptimizerConfig config{.lr = 1.0, .min_lr = 0.1, .warmup = 4};
  EXPECT_EQ(LearningRate(config, 0, 14), 0.25);
  EXPECT_EQ(LearningRate(config, 3, 14), 1.0);
  EXPECT_EQ(LearningRate(config, 4, 14), 1.0);
  EXPECT_NEAR(LearningRate(config, 9, 14), 0.55, 1e-15);
  EXPECT_EQ(LearningRate(config, 14, 14), 0.1);
  EXPECT_EQ(LearningRate(config, 1000, 14), 0.1);
  for (int k = 5; k < 14; ++k) EXPECT_LT(LearningRate(config, k, 14), LearningRate(config, k - 1, 14));
}

TEST(LearningRate, Constant) {
  const OptimizerConfig config{.lr = 0.5, .schedule = "constant", .warmup = 2};
  EXPECT_EQ(LearningRate(config, 0, 10), 0.25);
  EXPECT_EQ(LearningRate(config, 1, 10), 0.5);
  EXPECT_EQ(LearningRate(config, 500, 10), 0.5);
}

TEST(LearningRate, DecayStepsOverrideTheLengthOfTheRun) {
  const OptimizerConfig config{.lr = 1.0, .decay_steps = 8};
  EXPECT_NEAR(LearningRate(config, 4, 100), 0.5, 1e-15);
  EXPECT_EQ(LearningRate(config, 8, 100), 0.0);
}

TEST(LearningRate, WarmUpLongerThanTheRun) {
  const OptimizerConfig config{.lr = 1.0, .warmup = 10};
  EXPECT_EQ(LearningRate(config, 4, 5), 0.5);
  EXPECT_EQ(LearningRate(config, 10, 10), 0.0);
}

}  // namespace
}  // namespace penstock::optim
