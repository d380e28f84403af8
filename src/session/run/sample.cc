#include "session/run/sample.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "tokenizer/added_text.h"

namespace penstock::session {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

at::Tensor ToTensor(const std::vector<int32_t>& ids, int64_t first) {
  at::Tensor tensor = at::empty({1, static_cast<int64_t>(ids.size()) - first}, at::kLong);
  std::copy(ids.begin() + first, ids.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

}  // namespace

int64_t WindowStart(int64_t tokens, int64_t context) {
  if (tokens <= context) return 0;
  const int64_t jump = std::max<int64_t>(1, context / 2);
  return (tokens - context + jump - 1) / jump * jump;
}

std::vector<int32_t> PromptTokens(const tokenizer::Tokenizer& tokenizer, std::string_view prompt, bool specials) {
  std::vector<int32_t> ids;
  if (const auto first = tokenizer.beginning_of_text()) ids.push_back(*first);
  const std::vector<int32_t> text = specials ? tokenizer.EncodeWithSpecials(prompt) : tokenizer.Encode(prompt);
  ids.insert(ids.end(), text.begin(), text.end());
  if (ids.empty()) ids.push_back(tokenizer.end_of_document());
  return ids;
}

TextGenerator::TextGenerator(const model::ModelSpec& spec, model::Precision precision,
                             const checkpoint::NamedTensors& parameters, const tokenizer::Tokenizer& tokenizer)
    : spec_(spec), precision_(precision), tokenizer_(tokenizer) {
  for (const model::ParameterSpec& p : spec.parameters) parameters_.push_back(parameters.at(p.name));
}

std::vector<double> TextGenerator::Logits(const std::vector<int32_t>& ids, bool cache) {
  const auto count = static_cast<int64_t>(ids.size());
  const int64_t start = WindowStart(count, spec_.context);
  const std::vector<int32_t> seen(ids.begin() + start, ids.end());
  at::Tensor logits;
  if (!cache) {
    logits = nn::LastLogits(spec_, precision_, parameters_, ToTensor(seen, 0));
  } else {
    if (decoder_ == nullptr || decoder_->capacity() < static_cast<int64_t>(seen.size())) {
      const int64_t capacity = std::min(spec_.context, std::max<int64_t>(wanted_, count));
      decoder_ = std::make_unique<nn::Decoder>(spec_, precision_, parameters_, capacity);
      kept_.clear();
    }
    // What is kept of the same tokens at the same positions stays; the last one is computed in any case.
    const auto common = std::mismatch(kept_.begin(), kept_.end(), seen.begin(), seen.end()).first - kept_.begin();
    const int64_t kept = std::min<int64_t>(common, static_cast<int64_t>(seen.size()) - 1);
    decoder_->Truncate(kept);
    logits = decoder_->Append(ToTensor(seen, kept));
    kept_ = seen;
  }
  const at::Tensor wide = logits[0].to(at::kDouble).contiguous();
  const double* values = wide.const_data_ptr<double>();
  // Rows that only round the vocabulary up have no text.
  return {values, values + std::min<int64_t>(wide.numel(), tokenizer_.vocabulary())};
}

SampledText TextGenerator::Generate(std::string_view prompt, const SampleOptions& options,
                                    const std::function<void(std::string_view)>& emit) {
  CheckSamplingOptions(options.sampling);
  std::vector<int32_t> ids = PromptTokens(tokenizer_, prompt, options.specials);
  for (const int32_t id : ids)
    if (id >= spec_.vocabulary)
      throw UserError("the prompt has token {}, and the model knows {} tokens; give the tokenizer it was trained with",
                      id, spec_.vocabulary);
  SampledText out;
  out.prompt_tokens = static_cast<int64_t>(ids.size());
  wanted_ = out.prompt_tokens + options.tokens;
  tokenizer::AddedText added(tokenizer_, ids);
  Clock::time_point start = Clock::now();
  for (int64_t i = 0; i < options.tokens; ++i) {
    const std::vector<double> p = NextTokenProbabilities(Logits(ids, options.cache), options.sampling);
    const int32_t id = TokenAt(p, SamplingUniform(options.seed, options.sample, i));
    if (i == 0) {
      out.prompt_seconds = SecondsSince(start);
      start = Clock::now();
    }
    if (options.stop_at_end && id == tokenizer_.end_of_document()) {
      out.ended = true;
      break;
    }
    ids.push_back(id);
    out.ids.push_back(id);
    const std::string piece = added.Add(id);
    out.text += piece;
    if (emit && !piece.empty()) emit(piece);
  }
  out.seconds = SecondsSince(start);
  return out;
}

}  // namespace penstock::session
