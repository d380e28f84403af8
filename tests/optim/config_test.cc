#include "base/config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/optimizer_config.h"

namespace penstock::optim {
namespace {

OptimizerConfig Load(const std::string& toml) {
  OptimizerConfig optimizer;
  config::Config config;
  config.Add("optimizer", [&](config::Section& s) { optimizer.Declare(s); });
  config.LoadText("[optimizer]\n" + toml, "test.toml");
  config.Finish();
  return optimizer;
}

std::string Complaint(const std::string& toml) {
  try {
    Load(toml);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(OptimizerConfig, Loads) {
  const OptimizerConfig c =
      Load("name = 'sgd'\nlr = 0.5\nmomentum = 0.9\nnesterov = true\nclip = 1.0\nclip_norm = 'inf'");
  EXPECT_EQ(c.name, "sgd");
  EXPECT_TRUE(c.nesterov);
  EXPECT_EQ(c.clip_norm, "inf");
  EXPECT_EQ(Load("").name, "adamw");
}

// A key that would do nothing is an error.
TEST(OptimizerConfig, KeysWithoutEffect) {
  for (const char* toml :
       {"momentum = 0.9", "name = 'sgd'\nbeta1 = 0.8", "name = 'sgd'\nnesterov = true", "clip_norm = 'inf'",
        "schedule = 'constant'\nmin_lr = 1e-4", "weight_decay = 0.0\ndecay = 'all'"})
    EXPECT_NE(Complaint(toml), "") << toml;
}

TEST(OptimizerConfig, Bounds) {
  for (const char* toml : {"lr = 0.0", "beta2 = 1.0", "warmup = -1", "name = 'adam'", "lr = 1e-4\nmin_lr = 1e-3",
                           "warmup = 10\ndecay_steps = 10", "clip = -1.0", "clipp = 1.0"})
    EXPECT_NE(Complaint(toml), "") << toml;
  EXPECT_NE(Complaint("clipp = 1.0").find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace penstock::optim
