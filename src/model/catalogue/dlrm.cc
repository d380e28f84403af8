// Recommendation: embedding tables, an MLP over the dense features, their pairwise dot products, another MLP.
// Naumov et al., arXiv 1906.00091; the MLPerf sizes.
//   chain      "bottom.0" ..., "tables.0" ..., "interaction", "top.0" ...
//   boundary   after the bottom two tensors: what the bottom made, and the rows looked up so far; every table adds one.
//              A layer per table, because that is how tables are placed.
// One index per table and sample. Every size is per sample: length is 1.
#include <algorithm>
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

struct DlrmConfig {
  std::vector<int64_t> rows{};    // of every table
  std::vector<int64_t> bottom{};  // widths, the dense features first, the width of an embedding last
  std::vector<int64_t> top{};     // widths after the interaction, 1 last

  int64_t dim() const { return bottom.back(); }
  int64_t vectors() const { return static_cast<int64_t>(rows.size()) + 1; }
  int64_t pairs() const { return vectors() * (vectors() - 1) / 2; }
  int64_t interaction() const { return pairs() + dim(); }
};

// Criteo Terabyte with indices taken modulo 40 million.
const std::vector<int64_t> kTerabyteRows = {39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
                                            38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
                                            14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36};

LayerSpec Dense(ModelSpec& spec, const std::string& path, const std::string& kind, int64_t in, int64_t out) {
  LayerSpec layer{.path = path, .kind = kind};
  SpecWriter(spec, layer).Linear("linear", out, in, std::sqrt(2.0 / static_cast<double>(in + out)));
  layer.operations.push_back(Gemm("linear", PerSample(1), in, out, true, TensorSplit::replicated));
  layer.operations.push_back(Moving("activation", PerSample(2 * out), 1.5, TensorSplit::replicated));
  CountFlops(layer);
  layer.saved = PerSample(in);
  layer.operands_in_saved = PerSample(in);
  return layer;
}

BoundaryTensor DenseVector(int64_t width) { return {.name = "dense", .shape = {kBatch, width}}; }

ModelSpec Build(const DlrmConfig& config) {
  ModelSpec spec;
  spec.family = "dlrm";
  spec.context = 1;
  const int64_t d = config.dim();
  for (size_t i = 0; i + 1 < config.bottom.size(); ++i) {
    LayerSpec layer = Dense(spec, fmt::format("bottom.{}", i), "dense", config.bottom[i], config.bottom[i + 1]);
    if (i == 0) {
      layer.operations.front().input_gradient = false;
      CountFlops(layer);
    }
    layer.boundary = {DenseVector(config.bottom[i + 1])};
    spec.layers.push_back(std::move(layer));
  }
  for (size_t i = 0; i < config.rows.size(); ++i) {
    LayerSpec layer{.path = fmt::format("tables.{}", i), .kind = "table", .repeated = true};
    SpecWriter(spec, layer).Matrix("weight", config.rows[i], d, 1 / std::sqrt(static_cast<double>(config.rows[i])));
    layer.operations.push_back(Moving("lookup", PerSample(2 * d), 1.5, TensorSplit::replicated));
    layer.boundary = {DenseVector(d), {.name = "embeddings", .shape = {kBatch, static_cast<int64_t>(i) + 1, d}}};
    spec.layers.push_back(std::move(layer));
  }
  LayerSpec interaction{.path = "interaction", .kind = "interaction"};
  const int64_t vectors = config.vectors() * d;
  interaction.operations.push_back({.name = "dots",
                                    .kind = OperationKind::attention,
                                    .flops = PerSample(2 * config.pairs() * d),
                                    .moved = PerSample(vectors + config.pairs()),
                                    .backward_moved = 2,
                                    .split = TensorSplit::replicated});
  interaction.operations.push_back(Moving("join", PerSample(2 * config.interaction()), 1, TensorSplit::replicated));
  CountFlops(interaction);
  interaction.saved = PerSample(vectors);
  interaction.operands_in_saved = PerSample(vectors);
  interaction.boundary = {{.name = "features", .shape = {kBatch, config.interaction()}}};
  spec.layers.push_back(std::move(interaction));
  for (size_t i = 0; i < config.top.size(); ++i) {
    const int64_t in = i == 0 ? config.interaction() : config.top[i - 1];
    LayerSpec layer = Dense(spec, fmt::format("top.{}", i), "dense", in, config.top[i]);
    if (i + 1 < config.top.size())
      layer.boundary = {DenseVector(config.top[i])};
    else
      layer.saved = layer.saved + PerSample(config.top[i]);  // sigmoid
    spec.layers.push_back(std::move(layer));
  }
  for (const LayerSpec& layer : spec.layers)
    for (const BoundaryTensor& tensor : layer.boundary) spec.hidden = std::max(spec.hidden, tensor.numel(1, 1));
  CheckSpec(spec);
  return spec;
}

void Add(std::string name, std::string summary, std::string source, const DlrmConfig& config) {
  Registry<CatalogueEntry>::Add({.name = std::move(name),
                                 .summary = std::move(summary),
                                 .source = std::move(source),
                                 .sample = {config.bottom.front() + static_cast<int64_t>(config.rows.size())},
                                 .build = [config] { return Build(config); }});
}

const bool kRegistered = [] {
  Add("dlrm-mlperf", "Criteo Terabyte, 26 tables of 128", "Naumov et al., arXiv 1906.00091; MLPerf training",
      {.rows = kTerabyteRows, .bottom = {13, 512, 256, 128}, .top = {1024, 1024, 512, 256, 1}});
  std::vector<int64_t> capped = kTerabyteRows;
  for (int64_t& rows : capped) rows = std::min<int64_t>(rows, 10000);
  Add("dlrm-toy", "at most 10,000 rows of 16 per table, for a CPU", "stand-in",
      {.rows = capped, .bottom = {13, 64, 32, 16}, .top = {128, 64, 1}});
  return true;
}();

}  // namespace
}  // namespace penstock::model
