// Runs a model cut into stages the way an executor does: detached inputs, one alias per use, leaves from
// autograd::grad. For tests; one thread.
#pragma once

#include <torch/autograd.h>
#include <torch/types.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "model/gpt.h"
#include "model/partition.h"
#include "nn/deferred.h"
#include "nn/init.h"
#include "nn/layer.h"

namespace penstock::nn {

// The common tiny model of the issue tests: 4 layers, hidden 32, 4 heads, sequence 16, vocabulary 67.
inline model::GptConfig TinyConfig(const std::string& family = "gpt2") {
  model::GptConfig config{.family = family, .layers = 4, .hidden = 32, .heads = 4, .vocabulary = 67, .context = 16};
  if (family == "llama") config.kv_heads = 2;
  config.init_std = 0.2;  // so that every path has gradients of note
  return config;
}

inline std::vector<at::Tensor> InitialParameters(const model::ModelSpec& spec, model::Precision precision) {
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : spec.parameters) parameters.push_back(InitialParameter(parameter, 1, precision));
  return parameters;
}

// Tokens are a function of the sample id alone.
inline MicroBatchInputs MakeMicroBatch(const std::vector<int64_t>& samples, int64_t length, int64_t vocabulary) {
  MicroBatchInputs batch;
  batch.sample_ids = samples;
  const auto n = static_cast<int64_t>(samples.size());
  at::Tensor text = at::empty({n, length + 1}, at::kLong);
  for (int64_t b = 0; b < n; ++b)
    for (int64_t t = 0; t <= length; ++t)
      text[b][t] = static_cast<int64_t>((samples[b] * 7919 + t * t * 31 + t * 17 + 5) % vocabulary);
  batch.tokens = text.narrow(1, 0, length).contiguous();
  batch.labels = text.narrow(1, 1, length).contiguous();
  return batch;
}

using Leaves = std::map<std::string, at::Tensor>;  // "layer path/parameter name" -> gradient of that use

struct RunOptions {
  std::vector<int> first = {};  // stage borders; empty: one stage
  bool recompute = false;
  bool split = false;
  double grad_output = 1.0;
};

struct RunResult {
  double loss = 0.0;
  Leaves leaves;
  int64_t deferred_bytes = 0;
};

struct StageState {
  std::vector<at::Tensor> inputs, aliases, outputs;
  std::vector<std::string> names;
};

inline StageState ForwardStage(const model::ModelSpec& spec, int first, int last,
                               const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& received,
                               const LayerContext& context) {
  StageState state;
  for (const at::Tensor& t : received) state.inputs.push_back(t.detach().requires_grad_(true));
  std::vector<at::Tensor> current = state.inputs;
  const auto layers = BuildLayers(spec, first, last);
  for (int i = first; i < last; ++i) {
    std::vector<at::Tensor> mine;
    for (const int p : spec.layers[i].parameters) {
      mine.push_back(parameters[p].detach().requires_grad_(true));
      state.names.push_back(spec.layers[i].path + "/" + spec.parameters[p].name);
    }
    current = layers[i - first]->Forward(current, mine, context);
    state.aliases.insert(state.aliases.end(), mine.begin(), mine.end());
  }
  state.outputs = current;
  return state;
}

inline RunResult RunModel(const model::ModelSpec& spec, const std::vector<at::Tensor>& parameters,
                          const LayerContext& context, const RunOptions& options = {}) {
  std::vector<int> first = options.first;
  if (first.empty()) first = {0, static_cast<int>(spec.layers.size())};
  const int stages = static_cast<int>(first.size()) - 1;
  std::vector<std::vector<at::Tensor>> received(stages + 1);
  std::vector<StageState> states(stages);
  for (int s = 0; s < stages; ++s) {
    at::AutoGradMode grad(!options.recompute);
    states[s] = ForwardStage(spec, first[s], first[s + 1], parameters, received[s], context);
    for (const at::Tensor& t : states[s].outputs) received[s + 1].push_back(t.detach());
  }
  RunResult result;
  result.loss = received[stages][0].item<double>();
  std::vector<at::Tensor> grads = {at::scalar_tensor(options.grad_output, at::TensorOptions(at::kDouble))};
  for (int s = stages - 1; s >= 0; --s) {
    at::AutoGradMode grad(true);
    if (options.recompute) states[s] = ForwardStage(spec, first[s], first[s + 1], parameters, received[s], context);
    StageState& state = states[s];
    std::vector<at::Tensor> wanted = state.inputs;
    wanted.insert(wanted.end(), state.aliases.begin(), state.aliases.end());
    DeferredGrads deferred;
    std::vector<at::Tensor> leaves;
    {
      std::optional<DeferredGrads::Scope> scope;
      if (options.split) scope.emplace(deferred);
      leaves = torch::autograd::grad(state.outputs, wanted, grads, false, false, /*allow_unused=*/true);
    }
    result.deferred_bytes += deferred.bytes();
    grads.clear();
    for (size_t i = 0; i < state.inputs.size(); ++i) grads.push_back(leaves[i].contiguous());
    deferred.Flush([&](DeferredGrads::Result part) {
      for (size_t i = 0; i < wanted.size(); ++i)
        if (wanted[i].is_same(part.leaf)) leaves[i] = part.grad;
    });
    for (size_t i = 0; i < state.names.size(); ++i) result.leaves[state.names[i]] = leaves[state.inputs.size() + i];
  }
  return result;
}

inline bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

// Names of the leaves that differ in a bit.
inline std::vector<std::string> Differences(const Leaves& a, const Leaves& b) {
  std::vector<std::string> names;
  for (const auto& [name, gradient] : a)
    if (b.count(name) == 0 || !SameBits(gradient, b.at(name))) names.push_back(name);
  return names;
}

}  // namespace penstock::nn
