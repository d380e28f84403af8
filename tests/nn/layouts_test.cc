// Numerics test 4 (docs/numerics.md): for every registered family the leaves and the loss have the same bits whether
// the graph is cut at stage borders, split into input and weight halves, or recomputed.
#include <gtest/gtest.h>

#include "base/registry.h"
#include "model/family.h"
#include "stage_run.h"

namespace penstock::nn {
namespace {

using model::Precision;

struct Case {
  std::string name;
  model::GptConfig config;
  Precision precision = Precision::fp32;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const std::string& family : Registry<model::ModelFamily>::Names()) {
    for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16, Precision::fp16}) {
      model::GptConfig config = TinyConfig(family);
      cases.push_back({fmt::format("{}_{}", family, model::PrecisionName(precision)), config, precision});
    }
    model::GptConfig config = TinyConfig(family);
    config.dropout = 0.25;
    config.tied = false;
    cases.push_back({family + "_dropout_untied", config});
    config.attention = "reference";
    config.attention_dropout = 0.5;
    cases.push_back({family + "_reference_attention", config});
  }
  return cases;
}

class Layouts : public testing::TestWithParam<Case> {};

TEST_P(Layouts, CutSplitRecomputeKeepTheBits) {
  const model::ModelSpec spec = model::BuildGptSpec(GetParam().config);
  const std::vector<at::Tensor> parameters = InitialParameters(spec, GetParam().precision);
  const MicroBatchInputs batch = MakeMicroBatch({3, 1, 4}, 13, spec.vocabulary);
  const LayerContext context{.batch = &batch, .seed = 7, .step = 2, .precision = GetParam().precision};
  const RunResult whole = RunModel(spec, parameters, context, {.grad_output = 0.0625});
  EXPECT_GT(whole.loss, 0.0);
  for (const auto& [name, leaf] : whole.leaves) {
    ASSERT_TRUE(leaf.defined()) << name;
    EXPECT_EQ(leaf.scalar_type(), WideType(GetParam().precision)) << name;
    EXPECT_GT(leaf.abs().max().item<double>(), 0.0) << name;
  }
  int runs = 0;
  for (int stages = 1; stages <= static_cast<int>(spec.layers.size()); ++stages)
    for (const bool recompute : {false, true})
      for (const bool split : {false, true}) {
        const RunResult other = RunModel(spec, parameters, context,
                                         {.first = model::PartitionEven(spec, stages).first,
                                          .recompute = recompute,
                                          .split = split,
                                          .grad_output = 0.0625});
        EXPECT_EQ(other.loss, whole.loss);
        EXPECT_EQ(Differences(whole.leaves, other.leaves), std::vector<std::string>{})
            << stages << " stages, recompute " << recompute << ", split " << split;
        EXPECT_EQ(other.deferred_bytes > 0, split);
        ++runs;
      }
  EXPECT_EQ(runs, 24);
}

INSTANTIATE_TEST_SUITE_P(Families, Layouts, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

TEST(Layouts, NnKnowsTheFamiliesOfModel) {
  EXPECT_EQ(Registry<LayerFamily>::Names(), Registry<model::ModelFamily>::Names());
}

// Two rank threads that share one set of layers get the bits of one alone.
TEST(Layouts, TwoThreadsAtOnce) {
  model::GptConfig config = TinyConfig("llama");
  config.dropout = 0.1;
  const model::ModelSpec spec = model::BuildGptSpec(config);
  const std::vector<at::Tensor> parameters = InitialParameters(spec, Precision::fp32);
  const MicroBatchInputs batch = MakeMicroBatch({0, 1}, 16, spec.vocabulary);
  const LayerContext context{.batch = &batch, .seed = 1, .step = 0, .precision = Precision::fp32};
  at::set_num_threads(1);
  const RunResult alone = RunModel(spec, parameters, context);
  std::vector<RunResult> results(2);
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      at::set_num_threads(1);
      for (int i = 0; i < 3; ++i) results[r] = RunModel(spec, parameters, context, {.split = r == 1});
    });
  for (std::thread& rank : ranks) rank.join();
  for (const RunResult& result : results)
    EXPECT_EQ(Differences(alone.leaves, result.leaves), std::vector<std::string>{});
}

// A micro-batch without samples (fewer samples than micro-batches) costs nothing and adds nothing.
TEST(Layouts, EmptyMicroBatch) {
  for (const std::string& family : Registry<model::ModelFamily>::Names()) {
    const model::ModelSpec spec = model::BuildGptSpec(TinyConfig(family));
    const std::vector<at::Tensor> parameters = InitialParameters(spec, Precision::fp32);
    const MicroBatchInputs batch = MakeMicroBatch({}, 8, spec.vocabulary);
    const LayerContext context{.batch = &batch};
    const RunResult result = RunModel(spec, parameters, context, {.first = {0, 3, 6}, .split = true});
    EXPECT_EQ(result.loss, 0.0);
    for (const auto& [name, leaf] : result.leaves) EXPECT_EQ(leaf.abs().sum().item<double>(), 0.0) << name;
  }
}

// A rank that keeps W for later holds x and dY of each Linear: 16 U of a GPT-2 block (U = tokens x hidden).
TEST(Layouts, DeferredBytesOfABlock) {
  const model::ModelSpec spec = model::BuildGptSpec(TinyConfig());
  const std::vector<at::Tensor> parameters = InitialParameters(spec, Precision::fp32);
  const MicroBatchInputs batch = MakeMicroBatch({0, 1}, 16, spec.vocabulary);
  const LayerContext context{.batch = &batch};
  const RunResult result = RunModel(spec, parameters, context, {.split = true});
  const int64_t unit = 2 * 16 * 32 * 4;
  EXPECT_EQ(result.deferred_bytes, 4 * 16 * unit);
}

}  // namespace
}  // namespace penstock::nn
