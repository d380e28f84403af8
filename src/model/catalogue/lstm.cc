// LSTM language models: embedding, layers of one width, decoder that is the embedding again (tied) or its own.
//   chain   "embed", "lstm.0" ..., "head" (decoder, loss); the state of a layer stays in it
// Flops say nothing about time here: the recurrent products of a layer come one after another along the sequence, and
// read the recurrent weights anew at every step unless the device can hold them. `weights` counts them once.
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/registry.h"
#include "model/build/operations.h"
#include "model/build/spec_writer.h"
#include "model/catalogue.h"

namespace penstock::model {
namespace {

struct LstmConfig {
  int64_t vocabulary = 0, hidden = 0, layers = 0;
  bool tied = true;
  int64_t length = 35;  // steps of truncated backpropagation
};

std::vector<BoundaryTensor> Hidden(int64_t h) { return {{.name = "hidden", .shape = {kBatch, kLength, h}}}; }

LayerSpec Embed(ModelSpec& spec, const LstmConfig& config) {
  const int64_t h = config.hidden;
  LayerSpec layer{.path = "embed", .kind = "embed"};
  SpecWriter(spec, layer).Matrix("token.weight", config.vocabulary, h, 0.1 / std::sqrt(3.0));
  layer.operations.push_back(Moving("token", PerToken(2 * h), 1.5, TensorSplit::replicated));
  layer.boundary = Hidden(h);
  return layer;
}

LayerSpec Recurrent(ModelSpec& spec, const LstmConfig& config, int64_t index) {
  const int64_t h = config.hidden;
  const double std = 1 / std::sqrt(3.0 * static_cast<double>(h));
  LayerSpec layer{.path = fmt::format("lstm.{}", index), .kind = "lstm", .repeated = true};
  SpecWriter writer(spec, layer);
  writer.Matrix("weight_ih", 4 * h, h, std);
  writer.Matrix("weight_hh", 4 * h, h, std);
  writer.Vector("bias_ih", 4 * h, Init::zeros);
  writer.Vector("bias_hh", 4 * h, Init::zeros);
  layer.operations.push_back(Gemm("input", PerToken(1), h, 4 * h, true, TensorSplit::replicated));
  layer.operations.push_back(Gemm("recurrent", PerToken(1), h, 4 * h, true, TensorSplit::replicated));
  // Reads both products and the cell, writes gates, cell, its tanh and the output (16 h). The backward reads gates,
  // cell, tanh and two gradients of the output and one of the cell, writes those of the products and the cell (14 h).
  layer.operations.push_back(Moving("gates", PerToken(16 * h), 14.0 / 16, TensorSplit::replicated));
  CountFlops(layer);
  // Input; gates, cell, its tanh; output, which the next step multiplies.
  layer.saved = PerToken(h + 4 * h + h + h);
  layer.saved_operands = PerToken(h);
  layer.operands_in_saved = PerToken(h);
  layer.boundary = Hidden(h);
  return layer;
}

LayerSpec Head(ModelSpec& spec, const LstmConfig& config) {
  const int64_t h = config.hidden, v = config.vocabulary;
  LayerSpec layer{.path = "head", .kind = "head"};
  SpecWriter writer(spec, layer);
  if (config.tied) {
    writer.Share("embed.token.weight");
  } else {
    writer.Matrix("decoder.weight", v, h, 0.1 / std::sqrt(3.0));
  }
  writer.Vector("decoder.bias", v, Init::zeros);
  layer.operations.push_back(Gemm("decoder", PerToken(1), h, v, true, TensorSplit::replicated));
  layer.operations.push_back(Moving("loss", PerToken(v), 2, TensorSplit::replicated));
  CountFlops(layer);
  layer.saved = PerToken(h + v);
  layer.operands_in_saved = PerToken(h);
  layer.saved_statistics = PerToken(1);
  return layer;
}

ModelSpec Build(const LstmConfig& config) {
  ModelSpec spec;
  spec.family = "lstm";
  spec.vocabulary = config.vocabulary;
  spec.context = config.length;
  spec.hidden = config.hidden;
  spec.layers.push_back(Embed(spec, config));
  for (int64_t i = 0; i < config.layers; ++i) spec.layers.push_back(Recurrent(spec, config, i));
  spec.layers.push_back(Head(spec, config));
  CheckSpec(spec);
  return spec;
}

void Add(std::string name, std::string summary, std::string source, const LstmConfig& config) {
  Registry<CatalogueEntry>::Add({.name = std::move(name),
                                 .summary = std::move(summary),
                                 .source = std::move(source),
                                 .sample = {config.length},
                                 .length = config.length,
                                 .build = [config] { return Build(config); }});
}

const bool kRegistered = [] {
  Add("lstm-wikitext2", "3 x 650, tied", "Vogels et al., NeurIPS 2019 (PowerSGD)",
      {.vocabulary = 28869, .hidden = 650, .layers = 3});
  Add("lstm-ptb-large", "2 x 1500", "Zaremba et al., arXiv 1409.2329",
      {.vocabulary = 10000, .hidden = 1500, .layers = 2, .tied = false});
  Add("lstm-toy", "3 x 128, tied, for a CPU", "stand-in", {.vocabulary = 1000, .hidden = 128, .layers = 3});
  return true;
}();

}  // namespace
}  // namespace penstock::model
