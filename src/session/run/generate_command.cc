#include "session/run/generate_command.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8_stream.h"
#include "session/run/open_model.h"
#include "session/run/sample.h"

namespace penstock::session {
namespace {

constexpr int64_t kMaxTokens = 1000000;  // weeks, on a CPU

std::string PromptOf(const GenerateOptions& options) {
  if (options.prompt_file.empty()) return options.prompt;
  if (!options.prompt.empty()) throw UserError("--prompt and --prompt-file: give one of them");
  return ReadFile(options.prompt_file);
}

SampleOptions ToSampleOptions(const GenerateOptions& options) {
  if (options.tokens < 1 || options.tokens > kMaxTokens)
    throw UserError("--tokens is from 1 to {}, not {}", kMaxTokens, options.tokens);
  if (options.samples < 1 || options.samples > kMaxTokens)
    throw UserError("--samples is from 1 to {}, not {}", kMaxTokens, options.samples);
  if (options.seed < 0) throw UserError("--seed must not be negative, as run.seed");
  if (options.raw && options.json) throw UserError("--raw and --json: a JSON document is valid text");
  const SampleOptions sample{
      .tokens = options.tokens,
      .sampling = {.temperature = options.temperature, .top_k = options.top_k, .top_p = options.top_p},
      .seed = static_cast<uint64_t>(options.seed),
      .stop_at_end = options.stop_at_end,
      .specials = options.specials,
      .cache = !options.no_cache};
  CheckSamplingOptions(sample.sampling);
  return sample;
}

nlohmann::ordered_json ToJson(const SampledText& text) {
  // The first token belongs to the prompt: its time is that of reading it.
  const auto after_first = static_cast<double>(text.ids.size()) - (text.ended ? 0.0 : 1.0);
  return {{"text", ToValidUtf8(text.text)},
          {"tokens", text.ids.size()},
          {"ended", text.ended},
          {"prompt_seconds", text.prompt_seconds},
          {"seconds", text.seconds},
          {"tokens_per_second", text.seconds > 0 ? after_first / text.seconds : 0.0}};
}

// Shows a text as it comes.
class Printer {
 public:
  Printer(std::ostream& out, bool raw) : out_(out), raw_(raw) {}
  void operator()(std::string_view piece) {
    if (raw_) {
      out_ << piece << std::flush;
    } else {
      out_ << stream_.Push(piece) << std::flush;
    }
  }
  void Finish() { out_ << stream_.Finish() << "\n" << std::flush; }

 private:
  std::ostream& out_;
  const bool raw_;
  Utf8Stream stream_;
};

}  // namespace

int RunGenerate(const GenerateOptions& options, std::ostream& out) {
  SampleOptions sample = ToSampleOptions(options);
  const std::string prompt = PromptOf(options);
  const auto model = OpenModel({.from = options.from, .tokenizer = options.tokenizer, .threads = options.threads});
  TextGenerator generator(model->spec, model->precision, model->parameters, *model->tokenizer);
  nlohmann::ordered_json document = {
      {"checkpoint", model->checkpoint}, {"step", model->step}, {"prompt", ToValidUtf8(prompt)}};
  for (sample.sample = 0; sample.sample < options.samples; ++sample.sample) {
    if (options.json) {
      const SampledText text = generator.Generate(prompt, sample);
      if (sample.sample == 0) {
        document["prompt_tokens"] = text.prompt_tokens;
        document["text"] = ToValidUtf8(text.text);
      }
      document["samples"].push_back(ToJson(text));
    } else {
      if (options.samples > 1) out << fmt::format("--- sample {} of {} ---\n", sample.sample + 1, options.samples);
      Printer printer(out, options.raw);
      printer(prompt);
      generator.Generate(prompt, sample, [&printer](std::string_view piece) { printer(piece); });
      printer.Finish();
    }
  }
  if (options.json) out << document.dump(2) << "\n";
  return 0;
}

}  // namespace penstock::session
