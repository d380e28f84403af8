// What keeping keys and values is worth when text is generated: tokens per second with and without, after prompts of
// several lengths, for a GPT-2-style and a Llama-style model on one thread.
//   build/generate_bench
// Its exit status judges: at 512 tokens keeping them must be at least 5 times as fast, and the greedy text the same.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "model/gpt.h"
#include "nn/init.h"
#include "session/run/sample.h"

namespace penstock {
namespace {

struct Measured {
  double prompt_seconds = 0;
  double seconds_per_token = 0;
  std::vector<int32_t> ids;
};

Measured Measure(const model::ModelSpec& spec, const checkpoint::NamedTensors& parameters, int64_t prompt, bool cache,
                 int64_t tokens) {
  const tokenizer::ByteTokenizer bytes;
  session::TextGenerator generator(spec, model::Precision::fp32, parameters, bytes);
  const std::string text(static_cast<size_t>(prompt), 'a');
  const auto made =
      generator.Generate(text, {.tokens = tokens, .sampling = {.temperature = 0}, .seed = 1, .cache = cache});
  return {made.prompt_seconds, made.seconds / static_cast<double>(tokens - 1), made.ids};
}

int Main() {
  at::set_num_threads(1);
  bool good = true;
  fmt::print("{:8} {:>7} {:>14} {:>14} {:>8}\n", "model", "prompt", "with, ms/token", "without", "ratio");
  for (const char* family : {"gpt2", "llama"}) {
    model::GptConfig config{
        .family = family, .layers = 6, .hidden = 384, .heads = 6, .vocabulary = 256, .context = 1024};
    if (config.family == "llama") config.kv_heads = 2;
    config.init_std = 0.1;
    const model::ModelSpec spec = model::BuildGptSpec(config);
    checkpoint::NamedTensors parameters;
    for (const auto& p : spec.parameters) parameters[p.name] = nn::InitialParameter(p, 1, model::Precision::fp32);
    for (const int64_t prompt : {16, 128, 512, 960}) {
      constexpr int64_t kTokens = 17;
      const Measured with = Measure(spec, parameters, prompt, true, kTokens);
      const Measured without = Measure(spec, parameters, prompt, false, kTokens);
      const double ratio = without.seconds_per_token / with.seconds_per_token;
      const bool same = with.ids == without.ids;
      fmt::print("{:8} {:>7} {:>14.2f} {:>14.2f} {:>8.1f}{}\n", family, prompt, 1e3 * with.seconds_per_token,
                 1e3 * without.seconds_per_token, ratio, same ? "" : "  THE TEXTS DIFFER");
      good = good && same && (prompt != 512 || ratio >= 5);
    }
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main() { return penstock::Main(); }
