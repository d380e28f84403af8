// src/session/run/sample.h
//
// Text from a model, token after token on one thread, with keys and values kept (nn/decoder.h).
//
// Window:    the model sees at most spec.context tokens. When prompt and text pass it, the oldest are forgotten, half a
//            context at once (WindowStart): the rest is computed anew then, and each token costs little until the next
//            time. The rule does not depend on whether keys and values are kept.
// Text:      what the tokens after the prompt add; bytes that are no UTF-8 stay as they are (base/utf8_stream.h).
// Randomness: session/sampling.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_source.h"
#include "model/precision.h"
#include "model/spec.h"
#include "nn/decoder.h"
#include "session/sampling.h"
#include "tokenizer/tokenizer.h"

namespace penstock::session {

struct SampleOptions {
  int64_t tokens = 200;
  SamplingOptions sampling{};
  uint64_t seed = 1;
  int64_t sample = 0;        // which of several texts of the same prompt and seed
  bool stop_at_end = false;  // at the token that stands between documents, which is not part of the text
  bool specials = false;     // special tokens written in the prompt are recognised
  bool cache = true;         // false: the full forward for every token, to compare
};

struct SampledText {
  std::string text;          // without the prompt
  std::vector<int32_t> ids;  // the end token not among them
  int64_t prompt_tokens = 0;
  bool ended = false;         // by the end token
  double prompt_seconds = 0;  // until the first token was chosen
  double seconds = 0;         // for the tokens after it
};

// First of `tokens` tokens that a model with `context` positions sees for the next one.
int64_t WindowStart(int64_t tokens, int64_t context);

// The tokens of a prompt: with the token that texts begin with, where the tokenizer has one; of an empty prompt that,
// or the one between documents.
std::vector<int32_t> PromptTokens(const tokenizer::Tokenizer& tokenizer, std::string_view prompt,
                                  bool specials = false);

// References must outlive it. Single thread.
class TextGenerator {
 public:
  TextGenerator(const model::ModelSpec& spec, model::Precision precision, const checkpoint::NamedTensors& parameters,
                const tokenizer::Tokenizer& tokenizer);
  // `emit` (may be empty) sees the text as it grows. Several calls share what their prompts have in common. UserError
  // for options that mean nothing, a prompt with tokens that the model does not have, and logits that are no numbers.
  SampledText Generate(std::string_view prompt, const SampleOptions& options,
                       const std::function<void(std::string_view)>& emit = {});
  // Logits of the token after `ids`, [tokenizer's vocabulary].
  std::vector<double> Logits(const std::vector<int32_t>& ids, bool cache);

 private:
  const model::ModelSpec& spec_;
  const model::Precision precision_;
  std::vector<at::Tensor> parameters_;
  const tokenizer::Tokenizer& tokenizer_;
  std::unique_ptr<nn::Decoder> decoder_;
  std::vector<int32_t> kept_;  // tokens whose keys and values the decoder has
  int64_t wanted_ = 0;         // tokens that the caller means to reach
};

}  // namespace penstock::session
