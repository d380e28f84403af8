// Case I1 (https://github.com/deepspeedai/DeepSpeed/issues/1809): a misspelled key has no effect. Here it is an error
// of exit code 2 with file and line, and so are a key at the wrong level, a duplicate, and a number given as text.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/config.h"
#include "base/error.h"
#include "base/file.h"

namespace penstock {
namespace {

std::string LoadFault(const std::string& toml) {
  double clipping = 0;
  int64_t stage = 0;
  config::Config config;
  config.Add("train", [&](config::Section& s) {
    s.Real("gradient_clipping", &clipping, {.min = 0.0, .help = "largest norm of the gradient"});
    config::Section zero = s.Sub("zero_optimization");
    zero.Int("stage", &stage, {.min = 0, .max = 3, .help = "what is sharded"});
  });
  const std::string path = testing::TempDir() + "/penstock_i1.toml";
  WriteFileAtomically(path, toml, true);
  std::string fault = "accepted";
  try {
    config.LoadFile(path);
    config.Finish();
  } catch (const UserError& error) {
    EXPECT_EQ(error.exit_code(), 2);
    fault = error.what();
    EXPECT_EQ(fault.rfind(path + ":", 0), 0u) << fault;
    if (fault.rfind(path + ":", 0) == 0) fault = fault.substr(path.size() + 1);
  }
  std::remove(path.c_str());
  return fault;
}

TEST(I1, AMisspelledKeyIsAnError) {
  EXPECT_EQ(LoadFault("[train]\ngradient_cliping = 1.0\n"),
            "2: unknown key 'train.gradient_cliping'; did you mean 'gradient_clipping'?");
  EXPECT_EQ(LoadFault("[train]\n\nzero_optimisation = {}\n"),
            "3: unknown section 'train.zero_optimisation'; did you mean 'zero_optimization'?");
}

TEST(I1, AKeyAtTheWrongLevelIsToldItsPlace) {
  EXPECT_EQ(LoadFault("gradient_clipping = 1.0\n"),
            "1: unknown key 'gradient_clipping'; it belongs in section [train] (train.gradient_clipping)");
  EXPECT_EQ(LoadFault("[train]\nstage = 1\n"),
            "2: unknown key 'train.stage'; it belongs in section [train.zero_optimization] "
            "(train.zero_optimization.stage)");
}

TEST(I1, ADuplicateKeyIsRefused) {
  const std::string fault = LoadFault("[train]\ngradient_clipping = 1.0\n\ngradient_clipping = 2.0\n");
  EXPECT_EQ(fault.rfind("4: a key is given twice", 0), 0u) << fault;
}

TEST(I1, ANumberGivenAsTextIsRefused) {
  EXPECT_EQ(LoadFault("[train]\ngradient_clipping = \"1.0\"\n"),
            "2: train.gradient_clipping: must be a real number, not a text ('1.0'); remove the quotes");
}

}  // namespace
}  // namespace penstock
