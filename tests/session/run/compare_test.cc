// Comparisons where bits are not promised: rounding passes, also where AdamW makes a full step of it, and a fault is
// still found.
#include <gtest/gtest.h>

#include <map>

#include "issues/tiny.h"

namespace penstock {
namespace {

using checkpoint::Verdict;

const std::vector<std::string> kFast = {"train.micro_batch=1", "numerics.precision='fp32'",
                                        "numerics.reproducible=false", "optimizer.clip=0.5"};

// The bias of the keys has a gradient of zero but for rounding; AdamW moves it by the learning rate in any direction.
TEST(CompareRuns, AdamOnRoundingNoiseIsRounding) {
  const auto samples = tiny::EqualSamples();
  for (const auto& precision : {"fp32", "fp64", "bf16", "fp16"}) {
    const auto computation = tiny::With(kFast, {std::string("numerics.precision='") + precision + "'"});
    const auto pipeline = tiny::RunLayout(tiny::With(computation, {"parallel.pipeline=2", "parallel.data=2"}), samples);
    const session::RunComparison layouts = tiny::Compare(tiny::RunLayout(computation, samples), pipeline);
    EXPECT_EQ(layouts.verdict, Verdict::rounding) << precision << layouts.first << layouts.tensors.ToString();
    const session::RunComparison whole =
        tiny::Compare(tiny::Reference(computation, samples, session::OracleKind::whole), pipeline);
    EXPECT_EQ(whole.verdict, Verdict::rounding) << precision << whole.first << whole.tensors.ToString();
  }
}

// What the allowance must not hide: another learning rate, another decay, another clipping, other samples. The weaker
// the precision, the larger a fault must be.
TEST(CompareRuns, SmallFaultsAreFaults) {
  const auto samples = tiny::EqualSamples();
  const std::map<std::string, std::vector<std::string>> faults = {
      {"fp32",
       {"optimizer.lr=0.00101", "optimizer.weight_decay=0.02", "optimizer.beta1=0.899", "optimizer.clip=0.49",
        "run.seed=2"}},
      {"fp64",
       {"optimizer.lr=0.0010000001", "optimizer.weight_decay=0.0100001", "optimizer.beta1=0.8999999",
        "optimizer.clip=0.4999999", "run.seed=2"}},
      {"bf16", {"optimizer.lr=0.0012", "optimizer.beta1=0.8", "run.seed=2"}},
      {"fp16", {"optimizer.lr=0.00102", "optimizer.beta1=0.88", "run.seed=2"}}};
  for (const auto& [precision, list] : faults) {
    const auto computation = tiny::With(kFast, {"numerics.precision='" + precision + "'"});
    const auto right = tiny::RunLayout(computation, samples);
    for (const std::string& wrong : list) {
      const session::RunComparison c = tiny::Compare(right, tiny::RunLayout(tiny::With(computation, {wrong}), samples));
      EXPECT_EQ(c.verdict, Verdict::fault) << precision << ' ' << wrong << c.tensors.ToString();
    }
  }
}

// Clipping by the largest element is known to both oracles.
TEST(CompareRuns, InfinityNormInTheWholeBatchOracle) {
  const auto samples = tiny::EqualSamples();
  const std::vector<std::string> computation = {"train.micro_batch=1", "optimizer.clip=0.01",
                                                "optimizer.clip_norm='inf'"};
  const session::RunComparison c = tiny::Compare(tiny::Reference(computation, samples, session::OracleKind::whole),
                                                 tiny::Reference(computation, samples));
  EXPECT_EQ(c.verdict, Verdict::rounding) << c.first << c.tensors.ToString();
}

}  // namespace
}  // namespace penstock
