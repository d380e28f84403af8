// Keys and values that are kept change nothing but the time.
#include "nn/decoder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "stage_run.h"

namespace penstock::nn {
namespace {

using model::Precision;

class DecoderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { at::set_num_threads(1); }  // threads that wait for each other cost more than the work
};

struct Case {
  std::string name;
  model::GptConfig config;
};

std::vector<Case> Cases() {
  std::vector<Case> cases = {{"gpt2", TinyConfig("gpt2")}, {"llama", TinyConfig("llama")}};
  cases.push_back({"llama, one key head", TinyConfig("llama")});
  cases.back().config.kv_heads = 1;
  cases.push_back({"llama, no groups, reference attention", TinyConfig("llama")});
  cases.back().config.kv_heads = 4;
  cases.back().config.attention = "reference";
  cases.push_back({"gpt2, untied, dropout of the training", TinyConfig("gpt2")});
  cases.back().config.tied = false;
  cases.back().config.dropout = 0.5;
  return cases;
}

at::Tensor Tokens(int64_t batch, int64_t length) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < batch; ++i) samples.push_back(3 + i);
  return MakeMicroBatch(samples, length, 67).tokens;
}

// [batch, length, vocabulary] by the full forward.
at::Tensor FullLogits(const model::ModelSpec& spec, const std::vector<at::Tensor>& parameters, const at::Tensor& tokens,
                      Precision precision) {
  const at::NoGradGuard no_grad;
  MicroBatchInputs inputs;
  inputs.tokens = tokens;
  inputs.sample_ids.assign(tokens.size(0), 0);
  LayerContext context{.batch = &inputs, .precision = precision, .training = false, .head_output = HeadOutput::logits};
  return ForwardStage(spec, 0, static_cast<int>(spec.layers.size()), parameters, {}, context).outputs[0];
}

double Largest(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

TEST_F(DecoderTest, LogitsOfTheFullForward) {
  const std::vector<std::pair<Precision, double>> precisions = {
      {Precision::fp64, 1e-12}, {Precision::fp32, 2e-5}, {Precision::bf16, 0.1}, {Precision::fp16, 0.02}};
  for (const Case& c : Cases()) {
    for (const auto& [precision, tolerance] : precisions) {
      SCOPED_TRACE(c.name + ", " + std::to_string(tolerance));
      const model::ModelSpec spec = model::BuildGptSpec(c.config);
      const auto parameters = InitialParameters(spec, precision);
      const at::Tensor tokens = Tokens(2, 16), full = FullLogits(spec, parameters, tokens, precision);
      // Token by token; a prompt at once and then token by token; in pieces.
      for (const std::vector<int64_t>& pieces :
           {std::vector<int64_t>(16, 1), {7, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {5, 6, 5}, {16}}) {
        Decoder decoder(spec, precision, parameters, 16);
        int64_t at = 0;
        for (const int64_t n : pieces) {
          const at::Tensor logits = decoder.Append(tokens.narrow(1, at, n), HeadOutput::logits);
          EXPECT_LT(Largest(logits, full.narrow(1, at, n)), tolerance) << "positions from " << at;
          at += n;
          EXPECT_EQ(decoder.length(), at);
        }
      }
    }
  }
}

// Wrong positions or masks would be far off: what the tolerance above means.
TEST_F(DecoderTest, LogitsDependOnEveryPositionBefore) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const model::ModelSpec spec = model::BuildGptSpec(c.config);
    const auto parameters = InitialParameters(spec, Precision::fp64);
    const at::Tensor tokens = Tokens(1, 10);
    Decoder decoder(spec, Precision::fp64, parameters, 16);
    decoder.Append(tokens.narrow(1, 0, 9));
    const at::Tensor right = decoder.Append(tokens.narrow(1, 9, 1));
    for (int64_t changed = 0; changed < 10; ++changed) {
      at::Tensor other = tokens.clone();
      other[0][changed] = (other[0][changed].item<int64_t>() + 1) % 67;
      Decoder fresh(spec, Precision::fp64, parameters, 16);
      fresh.Append(other.narrow(1, 0, 9));
      EXPECT_GT(Largest(fresh.Append(other.narrow(1, 9, 1)), right), 1e-4) << changed;
    }
  }
}

TEST_F(DecoderTest, TruncatedGoesOnAsIfNothingHadBeenThere) {
  for (const Case& c : Cases()) {
    const model::ModelSpec spec = model::BuildGptSpec(c.config);
    const auto parameters = InitialParameters(spec, Precision::fp64);
    const at::Tensor tokens = Tokens(2, 16);
    Decoder decoder(spec, Precision::fp64, parameters, 16);
    decoder.Append(tokens.narrow(1, 0, 6));
    decoder.Append(tokens.narrow(1, 10, 5));  // something else
    decoder.Truncate(6);
    EXPECT_LT(Largest(decoder.Append(tokens.narrow(1, 6, 4)),
                      LastLogits(spec, Precision::fp64, parameters, tokens.narrow(1, 0, 10))),
              1e-12)
        << c.name;
  }
}

TEST_F(DecoderTest, Limits) {
  const model::ModelSpec spec = model::BuildGptSpec(TinyConfig());
  const auto parameters = InitialParameters(spec, Precision::fp32);
  EXPECT_THROW(Decoder(spec, Precision::fp32, parameters, 17), InternalError);
  Decoder decoder(spec, Precision::fp32, parameters, 16);
  decoder.Append(Tokens(1, 16));
  EXPECT_THROW(decoder.Append(Tokens(1, 1)), UserError);
  Decoder small(spec, Precision::fp32, parameters, 4);
  EXPECT_THROW(small.Append(Tokens(1, 5)), InternalError);
  EXPECT_THROW(small.Truncate(1), InternalError);
}

}  // namespace
}  // namespace penstock::nn
