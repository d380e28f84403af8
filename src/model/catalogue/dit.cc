// Diffusion transformers: patches of a latent image, every block modulated by a conditioning vector c of time step and
// class. Peebles and Xie, ICCV 2023.
//   chain      "embed", "blocks.0" ..., "head" (modulated norm, back to patches, loss)
//   boundary   two tensors: tokens, and c, which every block reads; its gradient is the sum over all blocks
// Positions are fixed (no parameter). Attention keeps its probabilities; the norms have no gain.
#include <string>
#include <utility>

#include "base/error.h"
#include "base/registry.h"
#include "model/build/operations.h"
#include "model/build/spec_writer.h"
#include "model/catalogue.h"

namespace penstock::model {
namespace {

struct DitConfig {
  int64_t layers = 12, hidden = 384, heads = 6, patch = 2;
  int64_t channels = 4, side = 32;  // of the latent image
  int64_t classes = 1000;
  int64_t frequencies = 256;  // of the time step

  int64_t tokens() const { return (side / patch) * (side / patch); }
  int64_t patch_numel() const { return channels * patch * patch; }
  int64_t out_numel() const { return 2 * patch_numel(); }  // noise and its variance
};

constexpr double kInitStd = 0.02;

std::vector<BoundaryTensor> Boundary(int64_t h) {
  return {{.name = "hidden", .shape = {kBatch, kLength, h}}, {.name = "condition", .shape = {kBatch, h}}};
}

// `parts` vectors (shift, scale, gate) per norm from c; as many rows as samples. Not split.
void AddModulation(std::vector<Operation>& ops, int64_t h, int64_t parts) {
  ops.push_back(Moving("modulation.activation", PerSample(2 * h), 1.5, TensorSplit::replicated));
  ops.push_back(Gemm("modulation", PerSample(1), h, parts * h, true, TensorSplit::replicated));
}

// Norm, scale and shift in one pass. The backward also sums the gradients of scale and shift.
Operation ModulatedNorm(const char* name, int64_t h) {
  return Moving(name, PerToken(2 * h) + PerSample(2 * h), 1.5, TensorSplit::replicated);
}

// Gate and residual in one pass. Backward: branch and gradient in, gradient out, then the two gradients added.
Operation GatedResidual(const char* name, int64_t h) {
  return Moving(name, PerToken(3 * h) + PerSample(h), 2, TensorSplit::replicated);
}

LayerSpec Embed(ModelSpec& spec, const DitConfig& config) {
  const int64_t h = config.hidden, in = config.patch_numel(), f = config.frequencies;
  LayerSpec layer{.path = "embed", .kind = "embed"};
  SpecWriter writer(spec, layer);
  writer.Tensor("patch.weight", {h, config.channels, config.patch, config.patch}, kInitStd);
  writer.Vector("patch.bias", h, Init::zeros);
  writer.Linear("time.fc1", h, f, kInitStd);
  writer.Linear("time.fc2", h, h, kInitStd);
  writer.Matrix("label.weight", config.classes + 1, h, kInitStd);  // and one for "no class"
  std::vector<Operation>& ops = layer.operations;
  ops.push_back(Gemm("patch", PerToken(1), in, h, true, TensorSplit::replicated));
  ops.back().input_gradient = false;
  ops.push_back(Moving("position", PerToken(3 * h), 0, TensorSplit::replicated));
  ops.push_back(Gemm("time.fc1", PerSample(1), f, h, true, TensorSplit::replicated));
  ops.back().input_gradient = false;
  ops.push_back(Moving("time.activation", PerSample(2 * h), 1.5, TensorSplit::replicated));
  ops.push_back(Gemm("time.fc2", PerSample(1), h, h, true, TensorSplit::replicated));
  ops.push_back(Moving("label", PerSample(3 * h), 1, TensorSplit::replicated));  // row and time in, c out
  CountFlops(layer);
  layer.saved = PerToken(in) + PerSample(h);  // patches; input of the activation
  layer.operands_in_saved = PerToken(in);
  layer.saved_operands = PerSample(f + h);
  layer.boundary = Boundary(h);
  return layer;
}

LayerSpec Block(ModelSpec& spec, const DitConfig& config, int64_t index) {
  const int64_t h = config.hidden;
  LayerSpec layer{.path = fmt::format("blocks.{}", index), .kind = "block", .repeated = true};
  SpecWriter writer(spec, layer);
  writer.Linear("attn.qkv", 3 * h, h, kInitStd);
  writer.Linear("attn.proj", h, h, kInitStd);
  writer.Linear("mlp.fc1", 4 * h, h, kInitStd);
  writer.Linear("mlp.fc2", h, 4 * h, kInitStd);
  // Published: zeros, so that a block starts as the identity.
  writer.Linear("modulation", 6 * h, h, 0);

  std::vector<Operation>& ops = layer.operations;
  AddModulation(ops, h, 6);
  ops.push_back(ModulatedNorm("norm1", h));
  ops.push_back(Gemm("attn.qkv", PerToken(1), h, 3 * h, true));
  AddAttentionCore(ops, {.hidden = h, .heads = config.heads, .fused = false});
  ops.push_back(Gemm("attn.proj", PerToken(1), h, h, true));
  ops.push_back(TensorReduce("attn.reduce", PerToken(h)));
  ops.push_back(GatedResidual("attn.residual", h));
  ops.push_back(ModulatedNorm("norm2", h));
  ops.push_back(Gemm("mlp.fc1", PerToken(1), h, 4 * h, true));
  ops.push_back(Moving("mlp.activation", PerToken(8 * h), 1.5, TensorSplit::split));
  ops.push_back(Gemm("mlp.fc2", PerToken(1), 4 * h, h, true));
  ops.push_back(TensorReduce("mlp.reduce", PerToken(h)));
  ops.push_back(GatedResidual("mlp.residual", h));
  CountFlops(layer);

  // Tokens: input and half-way sum, q, k, v, both gated branches, input of the activation. Samples: c and the six
  // vectors made of it.
  layer.saved = {.per_sample = h + 6 * h, .per_token = 2 * h + 3 * h + 2 * h + 4 * h, .per_token_pair = config.heads};
  layer.saved_operands = PerToken(2 * h + h + 4 * h) + PerSample(h);  // both norms' outputs, of proj and fc2; silu(c)
  layer.saved_statistics = PerToken(4);
  layer.boundary = Boundary(h);
  return layer;
}

LayerSpec Head(ModelSpec& spec, const DitConfig& config) {
  const int64_t h = config.hidden, out = config.out_numel();
  LayerSpec layer{.path = "head", .kind = "head"};
  SpecWriter writer(spec, layer);
  writer.Linear("modulation", 2 * h, h, 0);
  writer.Linear("linear", out, h, 0);
  AddModulation(layer.operations, h, 2);
  layer.operations.push_back(ModulatedNorm("norm", h));
  layer.operations.push_back(Gemm("linear", PerToken(1), h, out, true, TensorSplit::replicated));
  // Prediction against the noise.
  layer.operations.push_back(Moving("loss", PerToken(out + config.patch_numel()), 2, TensorSplit::replicated));
  CountFlops(layer);
  layer.saved = PerToken(h + out) + PerSample(h + 2 * h);
  layer.saved_operands = PerToken(h) + PerSample(h);
  layer.saved_statistics = PerToken(2);
  return layer;
}

ModelSpec Build(const DitConfig& config) {
  ModelSpec spec;
  spec.family = "dit";
  spec.context = config.tokens();
  spec.hidden = config.hidden;
  spec.layers.push_back(Embed(spec, config));
  for (int64_t i = 0; i < config.layers; ++i) spec.layers.push_back(Block(spec, config, i));
  spec.layers.push_back(Head(spec, config));
  CheckSpec(spec);
  return spec;
}

void Add(std::string name, std::string summary, std::string source, const DitConfig& config) {
  Registry<CatalogueEntry>::Add({.name = std::move(name),
                                 .summary = std::move(summary),
                                 .source = std::move(source),
                                 .sample = {config.channels, config.side, config.side},
                                 .length = config.tokens(),
                                 .build = [config] { return Build(config); }});
}

const bool kRegistered = [] {
  const std::string peebles = "Peebles and Xie, ICCV 2023";
  for (const int64_t patch : {2, 4, 8})
    Add(fmt::format("dit-s-{}", patch), fmt::format("256 x 256 images, patches of {}", patch), peebles,
        {.patch = patch});
  Add("dit-tiny", "latent 4 x 16 x 16, 10 classes, for a CPU", "stand-in",
      {.layers = 4, .hidden = 128, .heads = 4, .patch = 2, .side = 16, .classes = 10});
  return true;
}();

}  // namespace
}  // namespace penstock::model
