// src/session/run/evaluate.h
//
// How well a model predicts tokens: sums over samples, by the forward alone. All sums are in fp64 and in order of
// position, piece after piece, so that they do not depend on who computed which piece.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset.h"
#include "model/precision.h"
#include "model/spec.h"
#include "nn/layer.h"
#include "report/metrics.h"
#include "tokenizer/tokenizer.h"

namespace penstock::session {

struct Evaluation {
  double nats = 0;      // sum of -ln p over the tokens that count
  int64_t tokens = 0;   // labels that count
  int64_t correct = 0;  // of these, the likeliest token of the model (of equal ones, the one with the lower id)
  int64_t bytes = 0;    // of text that these tokens stand for; 0 when it is not known

  Evaluation& operator+=(const Evaluation& other);
  double loss() const { return nats / static_cast<double>(tokens); }
  double perplexity() const;
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(tokens); }
  // nats / ln 2 / bytes: what a compressor would need that codes with the model's probabilities. Unlike the loss it can
  // be compared between tokenizers. NaN when the bytes are not known.
  double bits_per_byte() const;
};
report::EvalMetrics ToMetrics(const Evaluation& evaluation);

// The bytes of text that each token stands for after other text; 0 for special tokens. Where the tokenizer is lossless,
// they add up to those of the text.
std::vector<int64_t> BytesOfTokens(const tokenizer::Tokenizer& tokenizer);

// Threads: Evaluate may be called from several at once.
class Evaluator {
 public:
  // `parameters` is indexed like spec.parameters and shared. `bytes`: BytesOfTokens, or empty.
  Evaluator(const model::ModelSpec& spec, model::Precision precision, const std::vector<at::Tensor>& parameters,
            std::vector<int64_t> bytes = {});
  // Samples [first, first + count) of `data`, as one batch. Memory: activations of one layer, and some 32 MiB of
  // logits.
  Evaluation Evaluate(const data::Dataset& data, int64_t first, int64_t count) const;

 private:
  const model::Precision precision_;
  std::vector<std::unique_ptr<nn::Layer>> layers_;
  std::vector<std::vector<at::Tensor>> parameters_;  // [layer]
  const std::vector<int64_t> bytes_;
  const int64_t vocabulary_;
};

// The evaluations of a training run (runtime/train_loop.h): the first samples of the validation split, in pieces that
// the ranks share.
class TrainEvaluation {
 public:
  // `samples` of `data`, at most; 0: all. `piece`: samples of one forward.
  TrainEvaluation(const model::ModelSpec& spec, model::Precision precision, std::shared_ptr<const data::Dataset> data,
                  std::vector<int64_t> bytes, int64_t samples, int64_t piece);
  // On every rank, at once.
  void Share(int rank, int ranks, const std::vector<at::Tensor>& parameters);
  // When all ranks are through: the pieces in order.
  Evaluation Total() const;
  int64_t samples() const { return samples_; }

 private:
  const model::ModelSpec& spec_;
  const model::Precision precision_;
  const std::shared_ptr<const data::Dataset> data_;
  const std::vector<int64_t> bytes_;
  const int64_t samples_, piece_;
  std::vector<Evaluation> pieces_;
};

}  // namespace penstock::session
