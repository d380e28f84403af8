#include "nn/decoder.h"

#include <ATen/core/grad_mode.h>

#include "base/error.h"

namespace penstock::nn {
namespace {

MicroBatchInputs InputsOf(const at::Tensor& tokens) {
  MicroBatchInputs inputs;
  inputs.tokens = tokens;
  for (int64_t i = 0; i < tokens.size(0); ++i) inputs.sample_ids.push_back(i);
  return inputs;
}

std::vector<std::vector<at::Tensor>> ByLayer(const model::ModelSpec& spec, const std::vector<at::Tensor>& parameters) {
  std::vector<std::vector<at::Tensor>> by_layer(spec.layers.size());
  for (size_t l = 0; l < by_layer.size(); ++l)
    for (const int p : spec.layers[l].parameters) by_layer[l].push_back(parameters.at(static_cast<size_t>(p)));
  return by_layer;
}

}  // namespace

Decoder::Decoder(const model::ModelSpec& spec, model::Precision precision, std::vector<at::Tensor> parameters,
                 int64_t capacity)
    : precision_(precision),
      capacity_(capacity),
      layers_(BuildLayers(spec, 0, static_cast<int>(spec.layers.size()))),
      parameters_(ByLayer(spec, parameters)),
      caches_(spec.layers.size(), KeyValueCache{.capacity = capacity, .length = 0, .keys = {}, .values = {}}) {
  PENSTOCK_CHECK(capacity >= 1 && capacity <= spec.context, "a capacity of {} positions of {}", capacity, spec.context);
}

at::Tensor Decoder::Append(const at::Tensor& tokens, HeadOutput output) {
  PENSTOCK_CHECK(output != HeadOutput::loss_sum, "a decoder gives logits");
  const at::NoGradGuard no_grad;
  const MicroBatchInputs inputs = InputsOf(tokens);
  LayerContext context;
  context.batch = &inputs;
  context.precision = precision_;
  context.training = false;
  context.head_output = output;
  std::vector<at::Tensor> values;
  for (size_t l = 0; l < layers_.size(); ++l) {
    caches_[l].length = length_;
    context.cache = &caches_[l];
    values = layers_[l]->Forward(values, parameters_[l], context);
  }
  length_ += tokens.size(1);
  return values[0];
}

void Decoder::Truncate(int64_t length) {
  PENSTOCK_CHECK(length >= 0 && length <= length_, "{} of {} positions", length, length_);
  length_ = length;
}

at::Tensor LastLogits(const model::ModelSpec& spec, model::Precision precision,
                      const std::vector<at::Tensor>& parameters, const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  const MicroBatchInputs inputs = InputsOf(tokens);
  LayerContext context;
  context.batch = &inputs;
  context.precision = precision;
  context.training = false;
  context.head_output = HeadOutput::last_logits;
  const auto by_layer = ByLayer(spec, parameters);
  const auto layers = BuildLayers(spec, 0, static_cast<int>(spec.layers.size()));
  std::vector<at::Tensor> values;
  for (size_t l = 0; l < layers.size(); ++l) values = layers[l]->Forward(values, by_layer[l], context);
  return values[0];
}

}  // namespace penstock::nn
