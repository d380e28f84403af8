#include "session/run/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace penstock::session {
namespace {

constexpr int64_t kLogits = 4 << 20;  // alive at once, in fp64: 32 MiB

// The tokens of samples, padded on the right, which causal attention does not see.
struct Padded {
  nn::MicroBatchInputs inputs;
  int64_t rows = 0, length = 0;
};

Padded Pad(const data::Dataset& data, int64_t first, int64_t count) {
  Padded out;
  out.rows = count;
  for (int64_t i = 0; i < count; ++i) out.length = std::max(out.length, data.Length(first + i));
  out.inputs.tokens = at::zeros({count, out.length}, at::kLong);
  out.inputs.labels = at::full({count, out.length}, nn::kIgnoredLabel, at::kLong);
  for (int64_t i = 0; i < count; ++i) {
    const data::Sample sample = data.Get(first + i);
    std::copy(sample.tokens.begin(), sample.tokens.end(),
              out.inputs.tokens.mutable_data_ptr<int64_t>() + i * out.length);
    int64_t* labels = out.inputs.labels.mutable_data_ptr<int64_t>() + i * out.length;
    for (size_t t = 0; t < sample.labels.size(); ++t)
      if (sample.labels[t] != data::kIgnoredLabel) labels[t] = sample.labels[t];
    out.inputs.sample_ids.push_back(first + i);
  }
  return out;
}

}  // namespace

Evaluation& Evaluation::operator+=(const Evaluation& other) {
  nats += other.nats;
  tokens += other.tokens;
  correct += other.correct;
  bytes += other.bytes;
  return *this;
}

double Evaluation::perplexity() const { return std::exp(loss()); }

double Evaluation::bits_per_byte() const {
  return bytes > 0 ? nats / std::log(2.0) / static_cast<double>(bytes) : std::nan("");
}

report::EvalMetrics ToMetrics(const Evaluation& evaluation) {
  report::EvalMetrics metrics;
  metrics.loss = evaluation.loss();
  if (evaluation.bytes > 0) metrics.bits_per_byte = evaluation.bits_per_byte();
  metrics.accuracy = evaluation.accuracy();
  metrics.tokens = evaluation.tokens;
  return metrics;
}

std::vector<int64_t> BytesOfTokens(const tokenizer::Tokenizer& tokenizer) {
  std::vector<int64_t> bytes(static_cast<size_t>(tokenizer.vocabulary()));
  // After another token: some tokenizers drop a space at the front of a text.
  const std::vector<int32_t> before = tokenizer.Encode("a");
  PENSTOCK_CHECK(!before.empty(), "the tokenizer '{}' has no token for a letter", tokenizer.name());
  const auto length = static_cast<int64_t>(tokenizer.Decode(before).size());
  std::vector<int32_t> pair = before;
  pair.push_back(0);
  for (int32_t id = 0; id < tokenizer.vocabulary(); ++id) {
    pair.back() = id;
    bytes[static_cast<size_t>(id)] = static_cast<int64_t>(tokenizer.Decode(pair).size()) - length;
  }
  for (const tokenizer::SpecialToken& special : tokenizer.special_tokens()) bytes[static_cast<size_t>(special.id)] = 0;
  bytes[static_cast<size_t>(tokenizer.end_of_document())] = 0;
  return bytes;
}

Evaluator::Evaluator(const model::ModelSpec& spec, model::Precision precision,
                     const std::vector<at::Tensor>& parameters, std::vector<int64_t> bytes)
    : precision_(precision),
      layers_(nn::BuildLayers(spec, 0, static_cast<int>(spec.layers.size()))),
      bytes_(std::move(bytes)),
      vocabulary_(spec.vocabulary) {
  for (const model::LayerSpec& layer : spec.layers) {
    parameters_.emplace_back();
    for (const int p : layer.parameters) parameters_.back().push_back(parameters.at(static_cast<size_t>(p)));
  }
}

Evaluation Evaluator::Evaluate(const data::Dataset& data, int64_t first, int64_t count) const {
  const at::NoGradGuard no_grad;
  const Padded batch = Pad(data, first, count);
  nn::LayerContext context;
  context.batch = &batch.inputs;
  context.precision = precision_;
  context.training = false;
  context.head_output = nn::HeadOutput::logits;
  std::vector<at::Tensor> values;
  for (size_t l = 0; l + 1 < layers_.size(); ++l) values = layers_[l]->Forward(values, parameters_[l], context);
  const at::Tensor hidden = values.at(0);

  Evaluation sum;
  const int64_t* labels = batch.inputs.labels.const_data_ptr<int64_t>();
  // The head looks at each position by itself: it gets as many at once as there is room for their logits.
  const int64_t width = std::max<int64_t>(1, kLogits / vocabulary_);
  for (int64_t row = 0; row < batch.rows; ++row) {
    for (int64_t at = 0; at < batch.length; at += width) {
      const int64_t n = std::min(width, batch.length - at);
      const int64_t* wanted = labels + row * batch.length + at;
      if (std::all_of(wanted, wanted + n, [](int64_t label) { return label == nn::kIgnoredLabel; })) continue;
      const at::Tensor part = hidden.narrow(0, row, 1).narrow(1, at, n).contiguous();
      const std::vector<at::Tensor> logits = layers_.back()->Forward({&part, 1}, parameters_.back(), context);
      const at::Tensor logs = at::log_softmax(logits[0].view({n, vocabulary_}).to(at::kDouble), -1).contiguous();
      const double* p = logs.const_data_ptr<double>();
      for (int64_t t = 0; t < n; ++t, p += vocabulary_) {
        if (wanted[t] == nn::kIgnoredLabel) continue;
        if (wanted[t] < 0 || wanted[t] >= vocabulary_)
          throw UserError("token {} of the data is not one of the {} that the model knows", wanted[t], vocabulary_);
        sum.nats -= p[wanted[t]];
        sum.correct += std::max_element(p, p + vocabulary_) - p == wanted[t];
        sum.tokens += 1;
        if (!bytes_.empty()) sum.bytes += bytes_.at(static_cast<size_t>(wanted[t]));
      }
    }
  }
  return sum;
}

TrainEvaluation::TrainEvaluation(const model::ModelSpec& spec, model::Precision precision,
                                 std::shared_ptr<const data::Dataset> data, std::vector<int64_t> bytes, int64_t samples,
                                 int64_t piece)
    : spec_(spec),
      precision_(precision),
      data_(std::move(data)),
      bytes_(std::move(bytes)),
      samples_(samples > 0 ? std::min(samples, data_->size()) : data_->size()),
      piece_(piece),
      pieces_(static_cast<size_t>((samples_ + piece - 1) / piece)) {}

void TrainEvaluation::Share(int rank, int ranks, const std::vector<at::Tensor>& parameters) {
  const Evaluator evaluator(spec_, precision_, parameters, bytes_);
  for (auto i = static_cast<int64_t>(rank); i < static_cast<int64_t>(pieces_.size()); i += ranks)
    pieces_[static_cast<size_t>(i)] = evaluator.Evaluate(*data_, i * piece_, std::min(piece_, samples_ - i * piece_));
}

Evaluation TrainEvaluation::Total() const {
  Evaluation total;
  for (const Evaluation& piece : pieces_) total += piece;
  return total;
}

}  // namespace penstock::session
