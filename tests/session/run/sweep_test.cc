// One computation in many layouts, bit for bit the plain single-rank loop (numerics.md, "same bits in any layout"; the
// eight tests at its end: 4, 5 and 7 are here).
#include "session/run/sweep.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "issues/tiny.h"

namespace penstock {
namespace {

// Six blocks, embedding and head: up to eight stages.
session::SettingsFactory Factory(const std::vector<std::string>& computation) {
  return [computation](const std::vector<std::string>& layout) {
    return tiny::Settings(tiny::With(
        tiny::With({"model.layers=6", "numerics.precision='fp32'", "optimizer.clip=0.5"}, computation), layout));
  };
}

void ExpectAllEqual(const char* title, const std::vector<std::string>& computation,
                    const session::SweepOptions& options, int at_least, double oracle_bound,
                    const std::shared_ptr<const data::Dataset>& samples) {
  const session::SweepResult result = session::Sweep(Factory(computation), options, samples, nullptr);
  std::printf("%s: %d layouts equal in every bit, %zu different, %d impossible ones refused; oracles differ by %.2g\n",
              title, result.compared - static_cast<int>(result.differing.size()), result.differing.size(),
              result.refused, result.oracle_difference);
  for (const std::string& difference : result.differing) ADD_FAILURE() << difference;
  for (const std::string& reason : result.refusals) EXPECT_FALSE(reason.empty());
  EXPECT_GE(result.compared, at_least);
  EXPECT_LE(result.oracle_difference, oracle_bound);
  EXPECT_EQ(result.oracle_fault, "");
}

TEST(Sweep, EightMicroBatchesTied) {
  ExpectAllEqual("G = 8, tied, dropout", {"train.micro_batch=1", "model.tied=true", "model.dropout=0.1"}, {}, 300, 1e-3,
                 tiny::EqualSamples());
}

TEST(Sweep, EightMicroBatchesUntied) {
  session::SweepOptions options;
  options.split_variants = false;
  ExpectAllEqual("G = 8, untied, llama",
                 {"train.micro_batch=1", "model.tied=false", "model.family='llama'", "model.kv_heads=2"}, options, 150,
                 1e-3, tiny::EqualSamples());
}

TEST(Sweep, SixMicroBatches) {
  session::SweepOptions options;
  options.recompute = {"none"};
  options.split_variants = false;
  options.data = {1, 2, 3, 4};
  ExpectAllEqual("G = 6", {"train.batch=6", "train.micro_batch=1"}, options, 100, 1e-3, tiny::EqualSamples());
}

TEST(Sweep, FiveRaggedMicroBatches) {
  session::SweepOptions options;
  options.data = {1, 2, 4};
  options.pipeline = {1, 2};
  options.split_variants = false;
  // 9 samples in 5 micro-batches of 2, 2, 2, 2, 1, of different lengths.
  ExpectAllEqual("G = 5, ragged", {"train.batch=9", "train.micro_batch=2", "data.ragged=true"}, options, 60, 1e-3,
                 tiny::Samples({16, 12, 9, 16, 5, 16, 3, 16, 11, 16, 16, 2, 7, 16, 16, 10, 9, 8, 16, 4}));
}

TEST(Sweep, SerialExecutionHasTheBitsOfStreams) {
  session::SweepOptions options;
  options.data = {1, 2};
  options.pipeline = {2};
  options.recompute = {"none"};
  options.split_variants = false;
  options.serial_variants = true;
  ExpectAllEqual("serial and streamed", {"train.micro_batch=1"}, options, 30, 1e-3, tiny::EqualSamples());
}

// The loss scale starts so high that the first steps are left out, in every layout the same ones.
TEST(Sweep, Fp16WithALossScale) {
  session::SweepOptions options;
  options.data = {1, 3};
  options.pipeline = {2};
  options.schedules = {"1f1b", "zb-h1", "zb-v"};
  options.recompute = {"none"};
  ExpectAllEqual(
      "fp16, scaled loss",
      {"train.micro_batch=1", "numerics.precision='fp16'", "model.tied=true", "train.steps=5",
       "numerics.loss_scale_initial=16777216", "numerics.loss_scale_backoff=0.0625", "numerics.loss_scale_interval=2"},
      options, 8, 0.01, tiny::EqualSamples());
}

// The bounds of the second oracle, with an optimizer that does not amplify rounding (Adam divides a gradient that is
// zero but for rounding, the bias of the keys, by its own magnitude).
TEST(Sweep, WholeBatchOracle) {
  for (const auto& [precision, bound] : std::vector<std::pair<std::string, double>>{{"fp32", 1e-5}, {"fp64", 1e-10}}) {
    session::SweepOptions options;
    options.data = {2};
    options.pipeline = {2};
    options.schedules = {"1f1b"};
    ExpectAllEqual(precision.c_str(),
                   {"train.micro_batch=1", "optimizer.name='sgd'", "optimizer.momentum=0.9", "optimizer.lr=0.1",
                    fmt::format("numerics.precision='{}'", precision)},
                   options, 4, bound, tiny::EqualSamples());
  }
}

// Two intra-op threads are another computation with its own oracle.
TEST(Sweep, TwoIntraOpThreadsHaveTheirOwnOracle) {
  session::SweepOptions options;
  options.data = {1, 2};
  options.pipeline = {2};
  options.schedules = {"1f1b"};
  options.recompute = {"none"};
  options.chunks = {1};
  ExpectAllEqual("two threads per rank", {"train.micro_batch=1", "runtime.intra_op_threads=2"}, options, 2, 1e-3,
                 tiny::EqualSamples());
}

// The comparison can fail: a left fold instead of the tree (fast mode) has other bits.
TEST(Sweep, AnotherSummationOrderIsFound) {
  const auto samples = tiny::EqualSamples();
  const std::vector<std::string> five = {"train.batch=8", "train.micro_batch=1", "numerics.precision='fp32'"};
  const auto tree = tiny::Reference(five, samples);
  const auto fold = tiny::RunLayout(tiny::With(five, {"numerics.reproducible=false"}), samples);
  const session::RunComparison c = tiny::Compare(tree, fold);
  EXPECT_NE(c.verdict, checkpoint::Verdict::equal);
  EXPECT_NE(c.first.find("gradient"), std::string::npos) << c.first;
}

}  // namespace
}  // namespace penstock
