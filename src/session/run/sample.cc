#include "session/run/sample.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "nn/layer.h"

namespace penstock::session {
namespace {

int32_t Draw(const at::Tensor& logits, const SampleOptions& options, int64_t position) {
  const at::Tensor wide = logits.to(at::kDouble).contiguous();
  const double* values = wide.const_data_ptr<double>();
  const int64_t n = wide.numel();
  const auto best = static_cast<int32_t>(std::max_element(values, values + n) - values);
  if (options.temperature <= 0) return best;
  std::vector<double> weights(n);
  for (int64_t i = 0; i < n; ++i) weights[i] = std::exp((values[i] - values[best]) / options.temperature);
  if (options.top_k > 0 && options.top_k < n) {
    std::vector<double> sorted = weights;
    std::nth_element(sorted.begin(), sorted.begin() + (options.top_k - 1), sorted.end(), std::greater<>());
    const double least = sorted[options.top_k - 1];
    for (double& w : weights) w = w < least ? 0 : w;
  }
  double total = 0;
  for (const double w : weights) total += w;
  const PhiloxCounter random = Philox({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0},
                                      MakePhiloxKey(options.seed, "sample"));
  double left = (static_cast<double>(random[0]) + 0.5) * 0x1p-32 * total;
  for (int64_t i = 0; i < n; ++i) {
    left -= weights[i];
    if (left < 0 && weights[i] > 0) return static_cast<int32_t>(i);
  }
  return best;
}

}  // namespace

std::string Sample(const model::ModelSpec& spec, model::Precision precision, const checkpoint::NamedTensors& parameters,
                   const tokenizer::Tokenizer& tokenizer, std::string_view prompt, const SampleOptions& options,
                   const std::function<void(std::string_view)>& emit) {
  std::vector<int32_t> ids = tokenizer.Encode(prompt);
  if (ids.empty()) throw UserError("the prompt is empty; give at least one character");
  const size_t prompt_tokens = ids.size();
  at::NoGradGuard no_grad;
  const auto layers = nn::BuildLayers(spec, 0, static_cast<int>(spec.layers.size()));
  std::string text;
  for (int64_t i = 0; i < options.tokens; ++i) {
    const size_t length = std::min<size_t>(ids.size(), static_cast<size_t>(spec.context));
    nn::MicroBatchInputs inputs;
    inputs.tokens = at::empty({1, static_cast<int64_t>(length)}, at::kLong);
    std::copy(ids.end() - static_cast<ptrdiff_t>(length), ids.end(), inputs.tokens.data_ptr<int64_t>());
    inputs.sample_ids = {0};
    nn::LayerContext context;
    context.batch = &inputs;
    context.precision = precision;
    context.training = false;
    context.head_output = nn::HeadOutput::last_logits;
    std::vector<at::Tensor> values;
    for (size_t l = 0; l < layers.size(); ++l) {
      std::vector<at::Tensor> used;
      for (const int p : spec.layers[l].parameters) used.push_back(parameters.at(spec.parameters[p].name));
      values = layers[l]->Forward(values, used, context);
    }
    ids.push_back(Draw(values[0][0], options, i));
    // Decoded as a whole: a character may need several tokens.
    const std::string grown = tokenizer.Decode({ids.data() + prompt_tokens, ids.size() - prompt_tokens});
    if (emit) emit(std::string_view(grown).substr(text.size()));
    text = grown;
  }
  return text;
}

}  // namespace penstock::session
