// BERT: encoder with LayerNorm after the residual, GELU (erf), word, position and segment embeddings. Devlin et al.
// 2019. Dropout is left out; attention keeps its probabilities.
//   chain   "embed", "blocks.0" ..., and "pooler" (the bare encoder) or "head" (pooler and both losses of pre-training)
#include <string>
#include <utility>

#include "base/error.h"
#include "base/registry.h"
#include "model/build/operations.h"
#include "model/build/spec_writer.h"
#include "model/catalogue.h"

namespace penstock::model {
namespace {

struct BertConfig {
  int64_t layers = 12, hidden = 768, heads = 12;
  int64_t vocabulary = 30522, context = 512, segments = 2;
  int64_t masked = 0;  // positions of a sample that are predicted; 0: no losses
};

constexpr double kInitStd = 0.02;

LayerSpec Embed(ModelSpec& spec, const BertConfig& config) {
  const int64_t h = config.hidden;
  LayerSpec layer{.path = "embed", .kind = "embed"};
  SpecWriter writer(spec, layer);
  writer.Matrix("word.weight", config.vocabulary, h, kInitStd);
  writer.Matrix("position.weight", config.context, h, kInitStd);
  writer.Matrix("segment.weight", config.segments, h, kInitStd);
  writer.Norm("norm", h);
  layer.operations.push_back(Moving("word", PerToken(2 * h), 1.5, TensorSplit::replicated));
  layer.operations.push_back(TensorReduce("word.reduce", PerToken(h), 0));
  // Three rows in, the sum out; the backward reads the gradient and adds it to both small tables.
  layer.operations.push_back(Moving("position", PerToken(4 * h), 0.75, TensorSplit::replicated));
  layer.operations.push_back(NormOperation("norm", h, true));
  CountFlops(layer);
  layer.saved = PerToken(h);  // input of the norm
  layer.saved_statistics = PerToken(2);
  layer.boundary = {{.name = "hidden", .shape = {kBatch, kLength, h}}};
  return layer;
}

LayerSpec Block(ModelSpec& spec, const BertConfig& config, int64_t index) {
  const int64_t h = config.hidden;
  LayerSpec layer{.path = fmt::format("blocks.{}", index), .kind = "block", .repeated = true};
  SpecWriter writer(spec, layer);
  for (const char* name : {"attn.q", "attn.k", "attn.v", "attn.proj"}) writer.Linear(name, h, h, kInitStd);
  writer.Norm("norm1", h);
  writer.Linear("mlp.fc1", 4 * h, h, kInitStd);
  writer.Linear("mlp.fc2", h, 4 * h, kInitStd);
  writer.Norm("norm2", h);

  std::vector<Operation>& ops = layer.operations;
  for (const char* name : {"attn.q", "attn.k", "attn.v"}) ops.push_back(Gemm(name, PerToken(1), h, h, true));
  AddAttentionCore(ops, {.hidden = h, .heads = config.heads, .fused = false});
  ops.push_back(Gemm("attn.proj", PerToken(1), h, h, true));
  ops.push_back(TensorReduce("attn.reduce", PerToken(h)));
  ops.push_back(ResidualOperation("attn.residual", h, false));
  ops.push_back(NormOperation("norm1", h, true));
  ops.push_back(Gemm("mlp.fc1", PerToken(1), h, 4 * h, true));
  ops.push_back(Moving("mlp.activation", PerToken(8 * h), 1.5, TensorSplit::split));
  ops.push_back(Gemm("mlp.fc2", PerToken(1), 4 * h, h, true));
  ops.push_back(TensorReduce("mlp.reduce", PerToken(h)));
  ops.push_back(ResidualOperation("mlp.residual", h, false));
  ops.push_back(NormOperation("norm2", h, true));
  CountFlops(layer);

  // Input, q, k, v, inputs of both norms and of the activation; probabilities.
  layer.saved = SizeFormula{.per_token = h + 3 * h + 2 * h + 4 * h, .per_token_pair = config.heads};
  layer.saved_operands = PerToken(h + h + 4 * h);  // of proj, fc1, fc2
  layer.operands_in_saved = PerToken(h);           // input, of q, k, v
  layer.saved_statistics = PerToken(4);
  layer.boundary = {{.name = "hidden", .shape = {kBatch, kLength, h}}};
  return layer;
}

LayerSpec End(ModelSpec& spec, const BertConfig& config) {
  const int64_t h = config.hidden, v = config.vocabulary, m = config.masked;
  LayerSpec layer{.path = m > 0 ? "head" : "pooler", .kind = m > 0 ? "head" : "pooler"};
  SpecWriter writer(spec, layer);
  writer.Linear(m > 0 ? "pooler" : "dense", h, h, kInitStd);
  std::vector<Operation>& ops = layer.operations;
  // The first token of a sample only. These small products are not split.
  const SizeFormula first = PerSample(1);
  ops.push_back(Gemm("pooler", first, h, h, true, TensorSplit::replicated));
  ops.push_back(Moving("pooler.tanh", PerSample(2 * h), 1.5, TensorSplit::replicated));
  layer.saved = PerToken(h) + PerSample(h);  // input; output of tanh
  layer.operands_in_saved = PerSample(h);    // its first token
  if (m > 0) {
    writer.Linear("masked.dense", h, h, kInitStd);
    writer.Norm("masked.norm", h);
    writer.Share("embed.word.weight");
    writer.Vector("masked.bias", v, Init::zeros);
    writer.Linear("next", 2, h, kInitStd);
    const SizeFormula rows = PerSample(m);
    ops.push_back(Moving("masked.gather", 2 * h * rows, 1, TensorSplit::replicated));
    ops.push_back(Gemm("masked.dense", rows, h, h, true, TensorSplit::replicated));
    ops.push_back(Moving("masked.activation", 2 * h * rows, 1.5, TensorSplit::replicated));
    ops.push_back(Moving("masked.norm", 2 * h * rows, 1.5, TensorSplit::replicated, 2 * h));
    ops.push_back(Gemm("masked.decoder", rows, h, v, true));
    ops.push_back(Moving("masked.loss", v * rows, 2, TensorSplit::split));
    ops.push_back(TensorReduce("masked.reduce", 3 * rows, static_cast<double>(h) / 3));
    ops.push_back(Gemm("next", first, h, 2, true, TensorSplit::replicated));
    layer.saved = layer.saved + (2 * h + v) * rows;              // inputs of activation and norm; logits
    layer.saved_operands = layer.saved_operands + 2 * h * rows;  // gathered rows, output of the norm
    layer.operands_in_saved = layer.operands_in_saved + PerSample(h);
    layer.saved_statistics = 3 * rows;
  }
  CountFlops(layer);
  return layer;
}

ModelSpec Build(const BertConfig& config) {
  ModelSpec spec;
  spec.family = "bert";
  spec.vocabulary = config.vocabulary;
  spec.context = config.context;
  spec.hidden = config.hidden;
  spec.layers.push_back(Embed(spec, config));
  for (int64_t i = 0; i < config.layers; ++i) spec.layers.push_back(Block(spec, config, i));
  spec.layers.push_back(End(spec, config));
  CheckSpec(spec);
  return spec;
}

void Add(std::string name, std::string summary, std::string source, int64_t length, const BertConfig& config) {
  Registry<CatalogueEntry>::Add({.name = std::move(name),
                                 .summary = std::move(summary),
                                 .source = std::move(source),
                                 .sample = {length},
                                 .length = length,
                                 .build = [config] { return Build(config); }});
}

const bool kRegistered = [] {
  const std::string devlin = "Devlin et al., NAACL 2019";
  const BertConfig base, large{.layers = 24, .hidden = 1024, .heads = 16};
  Add("bert-base", "encoder and pooler", devlin, 512, base);
  Add("bert-large", "encoder and pooler", devlin, 512, large);
  // 20 of 128 tokens predicted, as nine tenths of the published pre-training.
  BertConfig base_training = base, large_training = large;
  base_training.masked = large_training.masked = 20;
  Add("bert-base-pretraining", "with both losses, 20 of 128 tokens predicted", devlin, 128, base_training);
  Add("bert-large-pretraining", "with both losses, 20 of 128 tokens predicted", devlin, 128, large_training);
  Add("bert-tiny", "encoder and pooler, for a CPU", "Turc et al., arXiv 1908.08962", 128,
      {.layers = 2, .hidden = 128, .heads = 2});
  return true;
}();

}  // namespace
}  // namespace penstock::model
