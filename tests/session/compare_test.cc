// Comparisons where bits are not promised: rounding passes, also where AdamW makes a full step of it, and a fault is
// still found.
#include <gtest/gtest.h>

#include "issues/tiny.h"

namespace penstock {
namespace {

using checkpoint::Verdict;

const std::vector<std::string> kFast = {"train.micro_batch=1", "numerics.precision='fp32'",
                                        "numerics.reproducible=false", "optimizer.clip=0.5"};

// The bias of the keys has a gradient of zero but for rounding; AdamW moves it by the learning rate in any direction.
TEST(CompareRuns, AdamOnRoundingNoiseIsRounding) {
  const auto samples = tiny::EqualSamples();
  for (const auto& precision : {"fp32", "fp64", "bf16"}) {
    const auto computation = tiny::With(kFast, {std::string("numerics.precision='") + precision + "'"});
    const auto pipeline = tiny::RunLayout(tiny::With(computation, {"parallel.pipeline=2", "parallel.data=2"}), samples);
    const session::RunComparison layouts = tiny::Compare(tiny::RunLayout(computation, samples), pipeline);
    EXPECT_EQ(layouts.verdict, Verdict::rounding) << precision << layouts.first << layouts.tensors.ToString();
    const session::RunComparison whole =
        tiny::Compare(tiny::Reference(computation, samples, session::OracleKind::whole), pipeline);
    EXPECT_EQ(whole.verdict, Verdict::rounding) << precision << whole.first << whole.tensors.ToString();
  }
}

// What the allowance must not hide: another learning rate, another decay, one sample more.
TEST(CompareRuns, SmallFaultsAreFaults) {
  const auto samples = tiny::EqualSamples();
  const auto right = tiny::RunLayout(kFast, samples);
  for (const auto& wrong : std::vector<std::vector<std::string>>{{"optimizer.lr=0.00101"},
                                                                 {"optimizer.weight_decay=0.02"},
                                                                 {"optimizer.beta1=0.899"},
                                                                 {"optimizer.clip=0.49"},
                                                                 {"run.seed=2"}}) {
    const session::RunComparison c = tiny::Compare(right, tiny::RunLayout(tiny::With(kFast, wrong), samples));
    EXPECT_EQ(c.verdict, Verdict::fault) << wrong[0] << c.tensors.ToString();
  }
}

}  // namespace
}  // namespace penstock
