// The whole model: agreement of spec and layers, batch cuts, tied weights, bf16, logits, initial values, memory.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "stage_run.h"

namespace penstock::nn {
namespace {

using model::Precision;

double RelativeError(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).norm() / b.to(at::kDouble).norm()).item<double>();
}

// GPT-2 written with libtorch's own operations only.
double PlainGpt2Loss(const model::ModelSpec& spec, const model::GptConfig& config,
                     const std::vector<at::Tensor>& parameters, const MicroBatchInputs& batch) {
  const auto p = [&](const std::string& name) { return parameters[spec.parameter_index(name)]; };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {config.hidden}, p(name + ".weight"), p(name + ".bias"), config.norm_eps);
  };
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return at::linear(x, p(name + ".weight"), p(name + ".bias"));
  };
  const int64_t b = batch.tokens.size(0), t = batch.tokens.size(1);
  at::Tensor x = at::embedding(p("embed.token.weight"), batch.tokens) + p("embed.position.weight").narrow(0, 0, t);
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string block = fmt::format("blocks.{}.", i);
    const auto qkv = linear(norm(x, block + "norm1"), block + "attn.qkv").chunk(3, -1);
    const auto heads = [&](const at::Tensor& y) { return y.view({b, t, config.heads, -1}).transpose(1, 2); };
    at::Tensor scores = at::matmul(heads(qkv[0]), heads(qkv[1]).transpose(2, 3)) / std::sqrt(double(config.head_dim()));
    scores = scores + at::full({t, t}, -INFINITY, at::kDouble).triu_(1);
    const at::Tensor attended = at::matmul(at::softmax(scores, -1), heads(qkv[2])).transpose(1, 2).reshape({b, t, -1});
    x = x + linear(attended, block + "attn.proj");
    x = x + linear(at::gelu(linear(norm(x, block + "norm2"), block + "mlp.fc1"), "tanh"), block + "mlp.fc2");
  }
  const at::Tensor logits = at::matmul(norm(x, "head.norm"), p("embed.token.weight").t());
  return at::cross_entropy_loss(logits.view({b * t, -1}), batch.labels.view(-1), {}, at::Reduction::Sum, kIgnoredLabel)
      .item<double>();
}

TEST(Gpt, Gpt2LikePlainLibtorch) {
  const model::GptConfig config = model::ResolveGptConfig(TinyConfig());
  const model::ModelSpec spec = model::BuildGptSpec(config);
  const auto parameters = InitialParameters(spec, Precision::fp64);
  MicroBatchInputs batch = MakeMicroBatch({5, 6}, 16, spec.vocabulary);
  batch.labels[0][3] = kIgnoredLabel;
  const RunResult run = RunModel(spec, parameters, {.batch = &batch, .precision = Precision::fp64});
  const double plain = PlainGpt2Loss(spec, config, parameters, batch);
  EXPECT_NEAR(run.loss, plain, 1e-11 * plain);
}

// Directional derivative of the whole model along a fixed direction in all parameters.
TEST(Gpt, GradientOfTheWholeModelIsNumericallyRight) {
  for (const char* family : {"gpt2", "llama"}) {
    const model::ModelSpec spec = model::BuildGptSpec(TinyConfig(family));
    auto parameters = InitialParameters(spec, Precision::fp64);
    const MicroBatchInputs batch = MakeMicroBatch({5, 6}, 16, spec.vocabulary);
    const LayerContext context{.batch = &batch, .precision = Precision::fp64};
    const RunResult run = RunModel(spec, parameters, context);
    double expected = 0.0;
    std::vector<at::Tensor> direction;
    for (const auto& parameter : spec.parameters) {
      model::ParameterSpec noise = parameter;
      noise.init = model::Init::normal, noise.std = 1.0;
      direction.push_back(InitialParameter(noise, 77, Precision::fp64));
      for (const auto& layer : spec.layers) {
        const auto use = run.leaves.find(layer.path + "/" + parameter.name);
        if (use != run.leaves.end()) expected += (use->second * direction.back()).sum().item<double>();
      }
    }
    const double h = 1e-6;
    double losses[2];
    for (int side = 0; side < 2; ++side) {
      for (size_t i = 0; i < parameters.size(); ++i) parameters[i].add_(direction[i], side == 0 ? -h : 2 * h);
      losses[side] = RunModel(spec, parameters, context).loss;
    }
    EXPECT_NEAR((losses[1] - losses[0]) / (2 * h), expected, 1e-6 * std::abs(expected)) << family;
  }
}

// The loss and the gradients of a batch are the sums over its samples: dropout included.
TEST(Gpt, BatchCut) {
  for (const char* family : {"gpt2", "llama"}) {
    model::GptConfig config = TinyConfig(family);
    config.dropout = 0.2;
    const model::ModelSpec spec = model::BuildGptSpec(config);
    const auto parameters = InitialParameters(spec, Precision::fp64);
    const MicroBatchInputs whole = MakeMicroBatch({0, 1, 2, 3}, 16, spec.vocabulary);
    const LayerContext context{.batch = &whole, .seed = 3, .step = 4, .precision = Precision::fp64};
    const RunResult all = RunModel(spec, parameters, context);
    double loss = 0.0;
    Leaves sum;
    for (const std::vector<int64_t>& samples : {std::vector<int64_t>{0}, {1, 2}, {3}}) {
      const MicroBatchInputs part = MakeMicroBatch(samples, 16, spec.vocabulary);
      LayerContext mine = context;
      mine.batch = &part;
      const RunResult run = RunModel(spec, parameters, mine);
      loss += run.loss;
      for (const auto& [name, leaf] : run.leaves) sum[name] = sum.count(name) ? sum[name] + leaf : leaf;
    }
    EXPECT_NEAR(loss, all.loss, 1e-12 * loss);
    for (const auto& [name, leaf] : all.leaves) EXPECT_LT(RelativeError(sum[name], leaf), 1e-11) << name;
  }
}

TEST(Gpt, TiedIsUntiedWithTwoEqualWeights) {
  model::GptConfig config = TinyConfig();
  const model::ModelSpec tied = model::BuildGptSpec(config);
  config.tied = false;
  const model::ModelSpec untied = model::BuildGptSpec(config);
  const auto parameters = InitialParameters(tied, Precision::fp64);
  std::vector<at::Tensor> doubled;
  for (const auto& parameter : untied.parameters)
    doubled.push_back(
        parameters[tied.parameter_index(parameter.name == "head.lm.weight" ? "embed.token.weight" : parameter.name)]);
  const MicroBatchInputs batch = MakeMicroBatch({5, 6}, 16, tied.vocabulary);
  const LayerContext context{.batch = &batch, .precision = Precision::fp64};
  const RunResult a = RunModel(tied, parameters, context), b = RunModel(untied, doubled, context);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_TRUE(SameBits(a.leaves.at("head/embed.token.weight"), b.leaves.at("head/head.lm.weight")));
  EXPECT_TRUE(SameBits(a.leaves.at("embed/embed.token.weight"), b.leaves.at("embed/embed.token.weight")));
}

TEST(Gpt, FusedAndReferenceAttentionAgree) {
  for (const char* family : {"gpt2", "llama"}) {
    model::GptConfig config = TinyConfig(family);
    const model::ModelSpec fused = model::BuildGptSpec(config);
    config.attention = "reference";
    const model::ModelSpec reference = model::BuildGptSpec(config);
    const auto parameters = InitialParameters(fused, Precision::fp64);
    const MicroBatchInputs batch = MakeMicroBatch({5, 6}, 16, fused.vocabulary);
    const LayerContext context{.batch = &batch, .precision = Precision::fp64};
    const RunResult a = RunModel(fused, parameters, context), b = RunModel(reference, parameters, context);
    EXPECT_NEAR(a.loss, b.loss, 1e-12 * b.loss);
    for (const auto& [name, leaf] : a.leaves) EXPECT_LT(RelativeError(leaf, b.leaves.at(name)), 1e-11) << name;
  }
}

TEST(Gpt, Bf16AndFp16AreCloseToFp32) {
  for (const char* family : {"gpt2", "llama"}) {
    const model::ModelSpec spec = model::BuildGptSpec(TinyConfig(family));
    const auto parameters = InitialParameters(spec, Precision::fp32);
    const MicroBatchInputs batch = MakeMicroBatch({5, 6}, 16, spec.vocabulary);
    const RunResult exact = RunModel(spec, parameters, {.batch = &batch, .precision = Precision::fp32});
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      const double finer = precision == Precision::fp16 ? 8 : 1;  // 11 bits instead of 8
      const RunResult mixed = RunModel(spec, parameters, {.batch = &batch, .precision = precision});
      EXPECT_NEAR(mixed.loss, exact.loss, 5e-3 / finer * exact.loss);
      EXPECT_NE(mixed.loss, exact.loss);
      for (const auto& [name, leaf] : mixed.leaves) {
        EXPECT_EQ(leaf.scalar_type(), at::kFloat);
        EXPECT_LT(RelativeError(leaf, exact.leaves.at(name)), 5e-2 / finer)
            << name;  // 2^-9 per operand; through 16 products in a row, backward too
      }
    }
  }
}

TEST(Gpt, LogitsAgreeWithTheLoss) {
  const model::ModelSpec spec = model::BuildGptSpec(TinyConfig("llama"));
  const auto parameters = InitialParameters(spec, Precision::fp64);
  const MicroBatchInputs batch = MakeMicroBatch({5, 6}, 11, spec.vocabulary);
  LayerContext context{.batch = &batch, .precision = Precision::fp64, .training = false};
  at::NoGradGuard no_grad;
  const int last = static_cast<int>(spec.layers.size());
  const double loss = ForwardStage(spec, 0, last, parameters, {}, context).outputs[0].item<double>();
  context.head_output = HeadOutput::logits;
  const at::Tensor logits = ForwardStage(spec, 0, last, parameters, {}, context).outputs[0];
  context.head_output = HeadOutput::last_logits;
  const at::Tensor final = ForwardStage(spec, 0, last, parameters, {}, context).outputs[0];
  ASSERT_EQ(logits.sizes(), (at::IntArrayRef{2, 11, 67}));
  EXPECT_LT(RelativeError(final, logits.select(1, 10)), 1e-12);
  EXPECT_NEAR(
      at::cross_entropy_loss(logits.view({22, 67}), batch.labels.view(-1), {}, at::Reduction::Sum).item<double>(), loss,
      1e-11 * loss);
}

TEST(Gpt, ASequenceBeyondTheContextIsTheUsersError) {
  const model::ModelSpec spec = model::BuildGptSpec(TinyConfig());
  const MicroBatchInputs batch = MakeMicroBatch({0}, 17, spec.vocabulary);
  EXPECT_THROW(RunModel(spec, InitialParameters(spec, Precision::fp32), {.batch = &batch}), UserError);
}

TEST(Gpt, MisfitParametersAreNamed) {
  const model::ModelSpec spec = model::BuildGptSpec(TinyConfig());
  auto parameters = InitialParameters(spec, Precision::fp32);
  parameters[spec.parameter_index("blocks.2.mlp.fc1.weight")] = at::zeros({128, 31});
  const MicroBatchInputs batch = MakeMicroBatch({0}, 8, spec.vocabulary);
  try {
    RunModel(spec, parameters, {.batch = &batch});
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("blocks.2.mlp.fc1.weight"), std::string::npos) << error.what();
  }
}

TEST(Init, AnySliceIsTheSame) {
  const model::ParameterSpec parameter{.name = "w", .shape = {37, 11}, .init = model::Init::normal, .std = 0.5};
  const at::Tensor whole = InitialParameter(parameter, 9, Precision::fp32).view(-1);
  for (const auto& [begin, n] : {std::pair{0, 1}, {1, 1}, {3, 6}, {5, 402}, {406, 1}, {100, 0}}) {
    std::vector<float> part(n);
    FillInitialValues(parameter, 9, begin, part);
    for (int i = 0; i < n; ++i) EXPECT_EQ(part[i], whole[begin + i].item<float>());
  }
  EXPECT_TRUE(at::equal(InitialParameter(parameter, 9, Precision::fp64), whole.view({37, 11}).to(at::kDouble)));
}

TEST(Init, IsNormalAndKeyed) {
  model::ParameterSpec parameter{.name = "w", .shape = {400, 500}, .init = model::Init::normal, .std = 0.02};
  const at::Tensor w = InitialParameter(parameter, 1, Precision::fp64);
  EXPECT_NEAR(w.mean().item<double>(), 0.0, 2e-4);
  EXPECT_NEAR(w.std().item<double>(), 0.02, 2e-4);
  EXPECT_NEAR((w.abs() > 0.04).to(at::kDouble).mean().item<double>(), 0.0455, 2e-3);
  EXPECT_NEAR((w.view(-1).narrow(0, 0, 199'999) * w.view(-1).narrow(0, 1, 199'999)).mean().item<double>(), 0.0, 2e-6);
  EXPECT_FALSE(at::equal(w, InitialParameter(parameter, 2, Precision::fp64)));
  parameter.name = "v";
  EXPECT_FALSE(at::equal(w, InitialParameter(parameter, 1, Precision::fp64)));
  parameter.init = model::Init::ones;
  EXPECT_TRUE((InitialParameter(parameter, 1, Precision::fp32) == 1).all().item<bool>());
}

}  // namespace
}  // namespace penstock::nn
