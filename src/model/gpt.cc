#include "model/gpt.h"

#include <cmath>

#include "base/error.h"
#include "model/build/gpt_operations.h"
#include "model/build/spec_writer.h"
#include "model/family.h"

namespace penstock::model {
namespace {

std::vector<BoundaryTensor> Hidden(const GptConfig& config) {
  return {{.name = "hidden", .shape = {kBatch, kLength, config.hidden}}};
}

void Norm(SpecWriter& writer, const GptConfig& config, const std::string& name) {
  writer.Vector(name + ".weight", config.hidden, Init::ones);
  if (config.family == "gpt2") writer.Vector(name + ".bias", config.hidden, Init::zeros);
}

LayerSpec Embed(ModelSpec& spec, const GptConfig& config) {
  LayerSpec layer{.path = "embed", .kind = "embed"};
  SpecWriter writer(spec, layer);
  writer.Matrix("token.weight", config.vocabulary, config.hidden, config.init_std);
  if (config.family == "gpt2") writer.Matrix("position.weight", config.context, config.hidden, config.init_std);
  layer.boundary = Hidden(config);
  layer.operations = EmbedOperations(config);
  return layer;
}

LayerSpec Block(ModelSpec& spec, const GptConfig& config, int64_t index) {
  const bool gpt2 = config.family == "gpt2";
  const int64_t h = config.hidden, f = config.ffn, kv = config.kv_heads * config.head_dim();
  const double residual_std = config.init_std / std::sqrt(2.0 * static_cast<double>(config.layers));
  LayerSpec layer{.path = fmt::format("blocks.{}", index), .kind = "block", .repeated = true};
  SpecWriter writer(spec, layer);
  Norm(writer, config, "norm1");
  if (gpt2) {
    writer.Matrix("attn.qkv.weight", 3 * h, h, config.init_std);
    writer.Vector("attn.qkv.bias", 3 * h, Init::zeros);
    writer.Matrix("attn.proj.weight", h, h, residual_std);
    writer.Vector("attn.proj.bias", h, Init::zeros);
  } else {
    writer.Matrix("attn.q.weight", h, h, config.init_std);
    writer.Matrix("attn.k.weight", kv, h, config.init_std);
    writer.Matrix("attn.v.weight", kv, h, config.init_std);
    writer.Matrix("attn.proj.weight", h, h, residual_std);
  }
  Norm(writer, config, "norm2");
  if (gpt2) {
    writer.Matrix("mlp.fc1.weight", f, h, config.init_std);
    writer.Vector("mlp.fc1.bias", f, Init::zeros);
    writer.Matrix("mlp.fc2.weight", h, f, residual_std);
    writer.Vector("mlp.fc2.bias", h, Init::zeros);
  } else {
    writer.Matrix("mlp.gate.weight", f, h, config.init_std);
    writer.Matrix("mlp.up.weight", f, h, config.init_std);
    writer.Matrix("mlp.down.weight", h, f, residual_std);
  }
  layer.boundary = Hidden(config);

  const int64_t matrices = gpt2 ? 4 : 2;  // of h x h or h x kv below
  const int64_t linear = gpt2 ? 2 * (matrices * h * h + 2 * h * f) : 2 * (2 * h * h + 2 * h * kv + 3 * h * f);
  const int64_t scores = 4 * h;  // per pair of positions: q k^T and p v
  layer.forward_flops = {.per_token = linear, .per_token_pair = scores};
  layer.input_flops = {.per_token = linear, .per_token_pair = 2 * scores};
  layer.weight_flops = PerToken(linear);

  const bool reference = config.attention == "reference";
  // k and v are expanded to all heads before the attention, so they count h each.
  // Kept wide: block input and its half-way sum (norms), q, k, v, attention output, and what the activation needs.
  layer.saved = PerToken(2 * h + 3 * h + h + (gpt2 ? f : 3 * f));
  layer.saved_operands = PerToken(2 * h + f);  // both norms' outputs, and the input of fc2 or down
  layer.operands_in_saved = PerToken(h);       // attention output, input of the projection
  layer.saved_statistics = PerToken((gpt2 ? 4 : 2) + (reference ? 0 : config.heads));
  if (reference) layer.saved = layer.saved + SizeFormula{.per_token_pair = config.heads};
  layer.operations = BlockOperations(config);
  return layer;
}

LayerSpec Head(ModelSpec& spec, const GptConfig& config) {
  const int64_t h = config.hidden;
  LayerSpec layer{.path = "head", .kind = "head"};
  SpecWriter writer(spec, layer);
  Norm(writer, config, "norm");
  if (config.tied) {
    writer.Share("embed.token.weight");
  } else {
    writer.Matrix("lm.weight", config.vocabulary, h, config.init_std);
  }
  const int64_t logits = 2 * h * config.vocabulary;
  layer.forward_flops = PerToken(logits);
  layer.input_flops = PerToken(3 * logits);  // logits again, then both gradients: the head is not deferred
  layer.saved = PerToken(h);
  layer.saved_operands = PerToken(h);
  layer.saved_statistics = PerToken(config.family == "gpt2" ? 3 : 2);
  layer.workspace = config.loss_chunk * config.vocabulary;
  layer.operations = HeadOperations(config);
  return layer;
}

void RequirePositive(const char* key, int64_t value, int64_t most = INT64_MAX) {
  if (value < 1) throw UserError("model.{} = {}: must be at least 1", key, value);
  if (value > most) throw UserError("model.{} = {}: must be at most {}", key, value, most);
}

void RequireProbability(const char* key, double value) {
  if (!(value >= 0.0 && value < 1.0)) throw UserError("model.{} = {}: must be at least 0 and below 1", key, value);
}

}  // namespace

GptConfig ResolveGptConfig(GptConfig config) {
  const bool gpt2 = config.family == "gpt2";
  if (!gpt2 && config.family != "llama")
    throw UserError("model.family = \"{}\": a GPT is gpt2 or llama", config.family);
  RequirePositive("layers", config.layers, kMaxLayers);
  RequirePositive("hidden", config.hidden, kMaxHidden);
  RequirePositive("heads", config.heads, kMaxHidden);
  RequirePositive("vocabulary", config.vocabulary, kMaxVocabulary);
  RequirePositive("context", config.context, kMaxContext);
  RequirePositive("loss_chunk", config.loss_chunk);
  RequireProbability("dropout", config.dropout);
  RequireProbability("attention_dropout", config.attention_dropout);
  if (config.hidden % config.heads != 0)
    throw UserError("model.hidden = {} does not divide by model.heads = {}; model.hidden = {} would", config.hidden,
                    config.heads, (config.hidden / config.heads + 1) * config.heads);
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  RequirePositive("kv_heads", config.kv_heads);
  if (gpt2 && config.kv_heads != config.heads)
    throw UserError("model.kv_heads = {} has no effect on gpt2 (model.heads = {}); use family = \"llama\"",
                    config.kv_heads, config.heads);
  if (config.heads % config.kv_heads != 0)
    throw UserError("model.kv_heads = {} does not divide model.heads = {}; use 0 (as many as heads) or a divisor of it",
                    config.kv_heads, config.heads);
  if (!gpt2 && config.head_dim() % 2 != 0)
    throw UserError("model.hidden / model.heads = {} is odd: RoPE rotates pairs, so it must be even",
                    config.head_dim());
  if (config.ffn == 0) config.ffn = gpt2 ? 4 * config.hidden : (config.hidden * 8 / 3 + 7) / 8 * 8;
  RequirePositive("ffn", config.ffn, kMaxFfn);
  if (config.rope_scaling != "none" && config.rope_scaling != "linear" && config.rope_scaling != "llama3")
    throw UserError("model.rope_scaling = \"{}\": none, linear or llama3", config.rope_scaling);
  if (config.rope_scaling == "llama3" && !(config.rope_low_frequency < config.rope_high_frequency))
    throw UserError("model.rope_low_frequency = {} must be below model.rope_high_frequency = {}",
                    config.rope_low_frequency, config.rope_high_frequency);
  if (config.attention != "fused" && config.attention != "reference")
    throw UserError("model.attention = \"{}\": fused or reference", config.attention);
  if (config.attention_dropout > 0 && config.attention != "reference")
    throw UserError(
        "model.attention_dropout = {} needs model.attention = \"reference\": fused attention has no keyed dropout",
        config.attention_dropout);
  return config;
}

ModelSpec BuildGptSpec(const GptConfig& given) {
  const GptConfig config = ResolveGptConfig(given);
  ModelSpec spec;
  spec.family = config.family;
  spec.vocabulary = config.vocabulary;
  spec.context = config.context;
  spec.hidden = config.hidden;
  // Cosine and sine of half the channels, in fp64 and fp32 (nn/functions/rope.h).
  if (config.family != "gpt2") spec.table_bytes = config.context * config.head_dim() * (8 + 4);
  spec.config = config;
  spec.layers.push_back(Embed(spec, config));
  for (int64_t i = 0; i < config.layers; ++i) spec.layers.push_back(Block(spec, config, i));
  spec.layers.push_back(Head(spec, config));
  CheckSpec(spec);
  return spec;
}

namespace {

ModelSpec BuildFamily(const ModelConfig& config, const char* family) {
  GptConfig gpt = config.gpt;
  gpt.family = family;
  return BuildGptSpec(gpt);
}

const Register<ModelFamily> kGpt2{{
    .name = "gpt2",
    .summary = "decoder with LayerNorm, biases, GELU, learned positions",
    .source = "Radford et al., Language models are unsupervised multitask learners, 2019",
    .build = [](const ModelConfig& config) { return BuildFamily(config, "gpt2"); },
}};
const Register<ModelFamily> kLlama{{
    .name = "llama",
    .summary = "decoder with RMSNorm, RoPE, SwiGLU, grouped-query attention, no biases",
    .source = "Touvron et al., Llama 2: open foundation and fine-tuned chat models, 2023",
    .build = [](const ModelConfig& config) { return BuildFamily(config, "llama"); },
}};

}  // namespace

}  // namespace penstock::model
