#include "model/activation_bytes.h"

#include <algorithm>
#include <any>
#include <string_view>

#include "base/error.h"
#include "model/build/spec_writer.h"

namespace penstock::model {
namespace {

void RequireDivides(int64_t tensor, int64_t whole, std::string_view what) {
  if (tensor < 1 || whole % tensor != 0)
    throw UserError("tensor parallelism of {} does not divide {} = {}; use a divisor of it", tensor, what, whole);
}

void Check(const BlockShape& x, bool sequence_parallel = false) {
  RequireDivides(x.tensor, x.heads, "heads");
  RequireDivides(x.tensor, x.hidden, "hidden");
  if (sequence_parallel) RequireDivides(x.tensor, x.length, "the sequence length");
}

int64_t Tokens(const BlockShape& x) { return x.length * x.samples * x.hidden; }  // s b h

// 5 a s^2 b: probabilities, their dropout's mask and result.
int64_t Scores(const BlockShape& x) { return 5 * x.heads * x.length * x.length * x.samples; }

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t Sum(const std::vector<KeptTensor>& tensors, int64_t samples, int64_t length, const ActivationLayout& layout) {
  int64_t sum = 0;
  for (const KeptTensor& tensor : tensors) {
    if (tensor.selective && layout.recompute == Recompute::selective) continue;
    const int64_t bytes = layout.element_bytes * tensor.data(samples, length) + tensor.masks(samples, length) +
                          4 * tensor.statistics(samples, length);
    // Exact but for the vocabulary, which need not divide: the largest share.
    sum += CeilDivide(bytes, tensor.split || layout.sequence_parallel ? layout.tensor : 1);
  }
  return sum;
}

void Check(const GptConfig& config, int64_t length, const ActivationLayout& layout) {
  RequireDivides(layout.tensor, config.heads, "heads");
  RequireDivides(layout.tensor, config.kv_heads, "kv_heads");
  RequireDivides(layout.tensor, config.ffn, "ffn");
  if (layout.sequence_parallel) RequireDivides(layout.tensor, length, "the sequence length");
}

int64_t FullBytes(int64_t elements, const ActivationLayout& layout) {
  return layout.element_bytes * elements / (layout.sequence_parallel ? layout.tensor : 1);
}

int64_t SpecBytes(const ModelSpec& spec, int index, int64_t samples, int64_t length, const ActivationLayout& layout) {
  const LayerSpec& layer = spec.layers[index];
  if (layout.tensor != 1)
    throw UserError("tensor parallelism of {}: family {} has no split of its activations; use 1", layout.tensor,
                    spec.family);
  if (layout.recompute == Recompute::full && layer.repeated && index > 0) {
    int64_t elements = 0;
    for (const BoundaryTensor& tensor : spec.layers[index - 1].boundary) elements += tensor.numel(samples, length);
    return FullBytes(elements, layout);
  }
  SizeFormula kept = layer.saved + layer.saved_operands;
  if (layout.recompute == Recompute::selective) kept.per_token_pair = 0;
  return layout.element_bytes * kept(samples, length) + 4 * layer.saved_statistics(samples, length);
}

}  // namespace

int64_t UnsplitBytes(const BlockShape& x) { return 34 * Tokens(x) + Scores(x); }

int64_t TensorParallelBytes(const BlockShape& x) {
  Check(x);
  return 10 * Tokens(x) + (24 * Tokens(x) + Scores(x)) / x.tensor;
}

int64_t SequenceParallelBytes(const BlockShape& x) {
  Check(x, true);
  return UnsplitBytes(x) / x.tensor;
}

int64_t SelectiveBytes(const BlockShape& x) {
  Check(x);
  return 10 * Tokens(x) + 24 * Tokens(x) / x.tensor;
}

int64_t SequenceParallelSelectiveBytes(const BlockShape& x) {
  Check(x, true);
  return 34 * Tokens(x) / x.tensor;
}

int64_t FullRecomputeBytes(const BlockShape& x) { return 2 * Tokens(x); }

std::vector<KeptTensor> KeptByBlock(const GptConfig& given) {
  const GptConfig config = ResolveGptConfig(given);
  const bool gpt2 = config.family == "gpt2", dropout = config.dropout > 0;
  const int64_t h = config.hidden, a = config.heads, f = config.ffn, kv = config.kv_heads * config.head_dim();
  std::vector<KeptTensor> kept;
  const auto replicated = [&](const char* name, int64_t n) { kept.push_back({.name = name, .data = PerToken(n)}); };
  const auto split = [&](const char* name, int64_t n) {
    kept.push_back({.name = name, .data = PerToken(n), .split = true});
  };
  const auto mask = [&](const char* name) { kept.push_back({.name = name, .masks = PerToken(h)}); };

  replicated("norm1 input", h);
  replicated("q, k, v projections input", h);
  split("q and k", h + kv);
  if (config.attention == "reference") {
    kept.push_back({.name = "softmax output", .data = PerPair(a), .selective = true, .split = true});
    if (config.attention_dropout > 0) {
      kept.push_back({.name = "softmax dropout mask", .masks = PerPair(a), .selective = true, .split = true});
      kept.push_back({.name = "softmax dropout output", .data = PerPair(a), .selective = true, .split = true});
    }
  } else {
    kept.push_back({.name = "log-sum-exp", .statistics = PerToken(a), .selective = true, .split = true});
  }
  split("v", kv);
  split("output projection input", h);
  if (dropout) mask("attention dropout mask");
  replicated("norm2 input", h);
  replicated("feed-forward input", h);
  split("activation input", gpt2 ? f : 2 * f);
  split("feed-forward output projection input", f);
  if (dropout) mask("feed-forward dropout mask");
  return kept;
}

std::vector<KeptTensor> KeptByEmbed(const GptConfig& config) {
  if (config.dropout == 0) return {};
  return {{.name = "embedding dropout mask", .masks = PerToken(config.hidden)}};
}

std::vector<KeptTensor> KeptByHead(const GptConfig& config) {
  return {{.name = "final norm input", .data = PerToken(config.hidden)},
          {.name = "head input", .data = PerToken(config.hidden)},
          {.name = "logits", .statistics = PerToken(config.vocabulary), .split = true}};
}

int64_t StoredActivationBytes(const GptConfig& given, int64_t samples, int64_t length, const ActivationLayout& layout) {
  const GptConfig config = ResolveGptConfig(given);
  Check(config, length, layout);
  if (layout.recompute == Recompute::full) return FullBytes(samples * length * config.hidden, layout);
  return Sum(KeptByBlock(config), samples, length, layout);
}

int64_t StoredActivationBytes(const ModelSpec& spec, int index, int64_t samples, int64_t length,
                              const ActivationLayout& layout) {
  PENSTOCK_CHECK(index >= 0 && index < static_cast<int>(spec.layers.size()), "layer {} of {}", index,
                 spec.layers.size());
  const auto* config = std::any_cast<GptConfig>(&spec.config);
  if (config == nullptr) return SpecBytes(spec, index, samples, length, layout);
  const std::string& kind = spec.layers[index].kind;
  if (kind == "block") return StoredActivationBytes(*config, samples, length, layout);
  Check(*config, length, layout);
  return Sum(kind == "embed" ? KeptByEmbed(*config) : KeptByHead(*config), samples, length, layout);
}

Rational HeldShare(int64_t pipeline, int64_t chunks, int64_t micro_batches, int64_t rank) {
  PENSTOCK_CHECK(pipeline >= 1 && chunks >= 1 && micro_batches >= 1 && rank >= 0 && rank < pipeline,
                 "rank {} of {}, {} chunks, {} micro-batches", rank, pipeline, chunks, micro_batches);
  const int64_t alive = chunks == 1 ? pipeline - rank : 2 * (pipeline - 1 - rank) + (chunks - 1) * pipeline + 1;
  return Rational(std::min(micro_batches * chunks, alive), pipeline * chunks);
}

int64_t FirstStageExtraBytes(const BlockShape& x, int64_t vocabulary, int64_t pipeline, bool sequence_parallel) {
  Check(x, sequence_parallel);
  const int64_t share = sequence_parallel ? x.tensor : 1;
  int64_t bytes = Tokens(x) / share * pipeline;
  if (pipeline == 1) bytes += 4 * Tokens(x) / share + CeilDivide(4 * x.length * x.samples * vocabulary, x.tensor);
  return bytes;
}

}  // namespace penstock::model
