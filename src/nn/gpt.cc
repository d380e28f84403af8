// Layers of the GPT families (model/gpt.h). Parameters come in the order in which model/gpt.cc lists them.
#include "model/gpt.h"

#include <torch/types.h>

#include <any>

#include "base/error.h"
#include "base/registry.h"
#include "nn/functions/activation.h"
#include "nn/functions/attention.h"
#include "nn/functions/cached_attention.h"
#include "nn/functions/cross_entropy.h"
#include "nn/functions/dropout.h"
#include "nn/functions/gemm.h"
#include "nn/functions/linear.h"
#include "nn/functions/norm.h"
#include "nn/functions/rope.h"
#include "nn/layer.h"

namespace penstock::nn {
namespace {

using at::Tensor;
using model::GptConfig;

// Hands out a layer's parameters in order, holding each against its spec.
class Parameters {
 public:
  Parameters(std::span<const Tensor> tensors, std::span<const model::ParameterSpec> specs, const std::string& layer)
      : tensors_(tensors), specs_(specs) {
    PENSTOCK_CHECK(tensors.size() == specs.size(), "layer {} takes {} parameters, got {}", layer, specs.size(),
                   tensors.size());
  }
  const Tensor& Next() {
    const model::ParameterSpec& spec = specs_[next_];
    const Tensor& tensor = tensors_[next_++];
    PENSTOCK_CHECK(tensor.sizes() == at::IntArrayRef(spec.shape), "{} has another shape than the model says",
                   spec.name);
    return tensor;
  }

 private:
  std::span<const Tensor> tensors_;
  std::span<const model::ParameterSpec> specs_;
  size_t next_ = 0;
};

class GptLayer : public Layer {
 public:
  GptLayer(const model::ModelSpec& spec, int index)
      : layer_(spec.layers[index]), config_(std::any_cast<const GptConfig&>(spec.config)) {
    for (const int parameter : layer_.parameters) parameters_.push_back(spec.parameters[parameter]);
  }

 protected:
  const GptConfig& config() const { return config_; }
  const std::string& path() const { return layer_.path; }
  bool gpt2() const { return config_.family == "gpt2"; }
  Parameters Take(std::span<const Tensor> parameters) const { return Parameters(parameters, parameters_, path()); }

  Tensor Norm(const Tensor& x, Parameters& parameters) const {
    const Tensor& weight = parameters.Next();
    return gpt2() ? LayerNorm(x, weight, parameters.Next(), config_.norm_eps) : RmsNorm(x, weight, config_.norm_eps);
  }

  const Tensor& OnlyInput(std::span<const Tensor> inputs) const {
    PENSTOCK_CHECK(inputs.size() == 1 && inputs[0].dim() == 3 && inputs[0].size(2) == config_.hidden,
                   "layer {} takes one tensor [batch, length, {}]", path(), config_.hidden);
    return inputs[0];
  }

 private:
  // Copies: layers may outlive the spec they were built from.
  const model::LayerSpec layer_;
  const GptConfig config_;
  std::vector<model::ParameterSpec> parameters_;
};

class Embed final : public GptLayer {
 public:
  Embed(const model::ModelSpec& spec, int index) : GptLayer(spec, index), site_(DropoutSite(path(), "out")) {}

  std::vector<Tensor> Forward(std::span<const Tensor> inputs, std::span<const Tensor> given,
                              const LayerContext& context) const override {
    PENSTOCK_CHECK(inputs.empty() && context.batch != nullptr, "the embedding takes its tokens from the micro-batch");
    const Tensor& tokens = context.batch->tokens;
    const int64_t first = context.cache != nullptr ? context.cache->length : 0, end = first + tokens.size(1);
    if (end > config().context)
      throw UserError("a sequence of {} tokens is longer than model.context = {}", end, config().context);
    Parameters parameters = Take(given);
    Tensor x = at::embedding(parameters.Next(), tokens);
    if (gpt2()) x = x + parameters.Next().narrow(0, first, tokens.size(1));
    return {KeyedDropout(x, config().dropout, site_, context)};
  }

 private:
  const uint32_t site_;
};

class Block final : public GptLayer {
 public:
  Block(const model::ModelSpec& spec, int index)
      : GptLayer(spec, index),
        attention_site_(DropoutSite(path(), "attention")),
        probability_site_(DropoutSite(path(), "probabilities")),
        mlp_site_(DropoutSite(path(), "mlp")) {
    if (!gpt2())
      rope_ = GetRopeTable({.context = config().context,
                            .head_dim = config().head_dim(),
                            .base = config().rope_base,
                            .scaling = config().rope_scaling,
                            .factor = config().rope_factor,
                            .low_frequency = config().rope_low_frequency,
                            .high_frequency = config().rope_high_frequency,
                            .original_context = config().rope_original_context});
  }

  std::vector<Tensor> Forward(std::span<const Tensor> inputs, std::span<const Tensor> given,
                              const LayerContext& context) const override {
    Parameters parameters = Take(given);
    const double dropout = config().dropout;
    Tensor x = OnlyInput(inputs);
    x = x + KeyedDropout(Attend(Norm(x, parameters), parameters, context), dropout, attention_site_, context);
    x = x + KeyedDropout(FeedForward(Norm(x, parameters), parameters, context), dropout, mlp_site_, context);
    return {x};
  }

 private:
  Tensor Attend(const Tensor& x, Parameters& parameters, const LayerContext& context) const {
    const int64_t batch = x.size(0), length = x.size(1), heads = config().heads, d = config().head_dim();
    Tensor q, k, v;
    if (gpt2()) {
      const Tensor& weight = parameters.Next();
      const Tensor qkv = Linear(x, weight, parameters.Next(), context.precision).view({batch, length, 3, heads, d});
      q = qkv.select(2, 0), k = qkv.select(2, 1), v = qkv.select(2, 2);
    } else {
      const LinearInput input = MakeLinearInput(x, context.precision);
      const auto project = [&](int64_t n) {
        return Linear(input, parameters.Next(), {}, context.precision).view({batch, length, n, d});
      };
      const int64_t first = context.cache != nullptr ? context.cache->length : 0;
      q = Rope(project(heads), *rope_, first);
      k = Rope(project(config().kv_heads), *rope_, first);
      v = project(config().kv_heads);
    }
    const Tensor attended =
        context.cache != nullptr ? CachedAttention(q, k, v, *context.cache) : WholeAttention(q, k, v, context);
    const Tensor& weight = parameters.Next();
    return Linear(attended, weight, gpt2() ? parameters.Next() : Tensor(), context.precision);
  }

  Tensor WholeAttention(const Tensor& q, const Tensor& k, const Tensor& v, const LayerContext& context) const {
    const Tensor keys = ExpandHeads(k, q.size(2)), values = ExpandHeads(v, q.size(2));
    if (config().attention == "fused") return FusedAttention(q, keys, values);
    return ReferenceAttention(q, keys, values, config().attention_dropout, probability_site_, context);
  }

  Tensor FeedForward(const Tensor& x, Parameters& parameters, const LayerContext& context) const {
    if (gpt2()) {
      const Tensor& up = parameters.Next();
      const Tensor inner = Gelu(Linear(x, up, parameters.Next(), context.precision));
      const Tensor& down = parameters.Next();
      return Linear(inner, down, parameters.Next(), context.precision);
    }
    const LinearInput input = MakeLinearInput(x, context.precision);
    const Tensor gate = Linear(input, parameters.Next(), {}, context.precision);
    const Tensor up = Linear(input, parameters.Next(), {}, context.precision);
    return Linear(Swiglu(gate, up), parameters.Next(), {}, context.precision);
  }

  const uint32_t attention_site_, probability_site_, mlp_site_;
  std::shared_ptr<const RopeTable> rope_;
};

class Head final : public GptLayer {
 public:
  using GptLayer::GptLayer;

  std::vector<Tensor> Forward(std::span<const Tensor> inputs, std::span<const Tensor> given,
                              const LayerContext& context) const override {
    Parameters parameters = Take(given);
    Tensor x = OnlyInput(inputs);
    if (context.head_output == HeadOutput::last_logits) x = x.narrow(1, x.size(1) - 1, 1);
    x = Norm(x, parameters);
    const Tensor& weight = parameters.Next();
    switch (context.head_output) {
      case HeadOutput::loss_sum:
        PENSTOCK_CHECK(context.batch != nullptr, "the loss takes its labels from the micro-batch");
        return {LinearCrossEntropySum(x, weight, context.batch->labels, config().loss_chunk, context.precision)};
      case HeadOutput::logits:
        return {Linear(x, weight, {}, context.precision)};
      case HeadOutput::last_logits:
        return {Linear(x, weight, {}, context.precision).squeeze(1)};
    }
    throw InternalError("unknown head output");
  }
};

std::unique_ptr<Layer> BuildGptLayer(const model::ModelSpec& spec, int index) {
  const std::string& kind = spec.layers[index].kind;
  if (kind == "embed") return std::make_unique<Embed>(spec, index);
  if (kind == "block") return std::make_unique<Block>(spec, index);
  if (kind == "head") return std::make_unique<Head>(spec, index);
  throw InternalError(fmt::format("a GPT has no layer of kind '{}'", kind));
}

const Register<LayerFamily> kGpt2{{.name = "gpt2", .build = &BuildGptLayer}};
const Register<LayerFamily> kLlama{{.name = "llama", .build = &BuildGptLayer}};

}  // namespace
}  // namespace penstock::nn
