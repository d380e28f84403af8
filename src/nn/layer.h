// src/nn/layer.h
//
// The computing layers of a model. A stage runs its layers one after the other on its own autograd graph:
//
//   inputs of the first layer   detached tensors with requires_grad (nothing for the embedding)
//   parameters of a layer       aliases made for this micro-batch: `p.detach().requires_grad_(true)`, in the order of
//                               LayerSpec::parameters; a shared parameter gets one alias per use
//   leaves                      autograd::grad(outputs, inputs + aliases, grad_outputs, allow_unused = true)
//
// Without grad mode (AutoGradMode guard of the caller) nothing is saved; running the same layer on the same inputs
// again gives the same bits (recomputation).
//
// Threads: layers are stateless and const; one Layer may be used by several rank threads at once.
// Shapes:  boundary tensors are [batch, length, hidden], contiguous, fp32 (fp64 in fp64 runs).
// Errors:  InternalError when shapes do not fit the spec; UserError when a sequence is longer than the context.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/spec.h"

namespace penstock::nn {

inline constexpr int64_t kIgnoredLabel = -100;

struct MicroBatchInputs {
  at::Tensor tokens;                // [batch, length] int64
  at::Tensor labels;                // [batch, length] int64, kIgnoredLabel where there is no loss
  std::vector<int64_t> sample_ids;  // index of each sample in the global batch; keys dropout
  int32_t index = 0;                // of the micro-batch in the global batch
};

enum class HeadOutput : uint8_t {
  loss_sum,     // scalar fp64: sum of the loss over valid labels, in token order. grad_output = scale / valid tokens
  logits,       // [batch, length, vocabulary]
  last_logits,  // [batch, vocabulary]: of the last position
};

struct KeyValueCache;  // nn/functions/cached_attention.h

struct LayerContext {
  const MicroBatchInputs* batch = nullptr;
  uint64_t seed = 0;
  int64_t step = 0;
  model::Precision precision = model::Precision::fp32;
  bool training = true;  // dropout on
  HeadOutput head_output = HeadOutput::loss_sum;
  // Set by nn/decoder.h alone, another one for each layer: the tokens stand after the positions that are kept.
  KeyValueCache* cache = nullptr;
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual std::vector<at::Tensor> Forward(std::span<const at::Tensor> inputs, std::span<const at::Tensor> parameters,
                                          const LayerContext& context) const = 0;
};

// What nn knows about a model family; same names as Registry<model::ModelFamily> (tested).
struct LayerFamily {
  static constexpr const char* kRegistryName = "layer family";
  std::string name{};
  std::unique_ptr<Layer> (*build)(const model::ModelSpec& spec, int layer) = nullptr;
};

// Layers [first, last) of the chain.
std::vector<std::unique_ptr<Layer>> BuildLayers(const model::ModelSpec& spec, int first, int last);

// Element type of parameters, residual stream and boundaries.
at::ScalarType WideType(model::Precision precision);

}  // namespace penstock::nn
