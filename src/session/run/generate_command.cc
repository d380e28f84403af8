#include "session/run/generate_command.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "runtime/environment.h"
#include "runtime/train_loop.h"
#include "session/run/prepare.h"
#include "session/run/sample.h"

namespace penstock::session {

constexpr int64_t kMaxTokens = 1000000;  // weeks, on a CPU

int RunGenerate(const GenerateOptions& options, std::ostream& out) {
  if (options.tokens < 1) throw UserError("--tokens must be at least 1, not {}", options.tokens);
  if (!(options.temperature >= 0 && options.temperature < 1e6))
    throw UserError("--temperature must be a number from 0 (the likeliest token) to a million");
  if (options.tokens > kMaxTokens) throw UserError("--tokens is at most {}, not {}", kMaxTokens, options.tokens);
  if (options.seed < 0) throw UserError("--seed must not be negative, as run.seed");
  if (options.top_k < 0) throw UserError("--top-k must not be negative; 0 keeps all tokens");
  const std::string run_checkpoints = options.from + "/checkpoints";
  const checkpoint::Checkpoint from(
      checkpoint::ResolveCheckpoint(std::filesystem::is_directory(run_checkpoints) ? run_checkpoints : options.from));
  LoadedSettings settings;
  settings.config.LoadText(from.state().config, from.path() + " (its configuration)");
  settings.config.Finish();
  runtime::PrepareProcess(/*reproducible=*/false);
  const model::ModelSpec spec = ModelOf(settings);
  from.RequireModel(ModelFingerprint(spec));
  runtime::Job job;
  job.spec = spec;
  job.precision = model::ParsePrecision(settings.values.numerics.precision);
  job.optimizer = settings.values.optimizer;
  checkpoint::NamedTensors parameters;
  for (const checkpoint::TensorSpec& tensor : runtime::ModelTensors(job))
    parameters[tensor.name] = from.ReadModel(tensor);
  const auto tokenizer = tokenizer::LoadTokenizer(settings.values.data.tokenizer);
  const SampleOptions sample{.tokens = options.tokens,
                             .temperature = options.temperature,
                             .top_k = options.top_k,
                             .seed = static_cast<uint64_t>(options.seed)};
  if (!options.json) out << options.prompt << std::flush;
  const std::string text = Sample(
      spec, job.precision, parameters, *tokenizer, options.prompt, sample,
      options.json ? std::function<void(std::string_view)>()
                   : [&](std::string_view piece) { out << piece << std::flush; });
  if (options.json) {
    const nlohmann::ordered_json document = {
        {"checkpoint", from.path()}, {"step", from.state().step}, {"prompt", options.prompt}, {"text", text}};
    out << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    out << "\n";
  }
  return 0;
}

}  // namespace penstock::session
