#include "session/run/start_weights.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "session/run/find_tokenizer.h"
#include "session/run/run_directory.h"

namespace penstock::session {

std::shared_ptr<const checkpoint::Checkpoint> OpenStartWeights(const LoadedSettings& settings, const PreparedRun& run) {
  const std::string& path = settings.values.checkpoint.weights;
  if (path.empty()) return nullptr;
  auto weights = std::make_shared<const checkpoint::Checkpoint>(checkpoint::ResolveCheckpoint(CheckpointsOf(path)));
  weights->RequireModel(ModelFingerprint(run.job.spec));
  RequireSameFunction(settings, *weights, "checkpoint.weights");
  if (run.text.tokenizer != nullptr) RequireTokenizer(weights->state(), weights->path(), *run.text.tokenizer);
  return weights;
}

void RequireSameFunction(const LoadedSettings& settings, const checkpoint::Checkpoint& from, const char* key) {
  LoadedSettings there;
  there.config.LoadText(from.state().config, from.path() + " (its configuration)");
  const nlohmann::ordered_json ours = settings.config.Json().at("model"), theirs = there.config.Json().at("model");
  std::vector<std::string> differences;
  bool rope = false;
  const auto compare = [&](std::initializer_list<const char*> names, bool of_rope) {
    for (const char* name : names) {
      if (ours.at(name) == theirs.at(name)) continue;
      rope = rope || of_rope;
      differences.push_back(
          fmt::format("model.{} = {} and this run {}", name, theirs.at(name).dump(), ours.at(name).dump()));
    }
  };
  compare({"heads", "norm_eps"}, false);
  if (!settings.values.checkpoint.other_rope)
    compare({"rope_base", "rope_scaling", "rope_factor", "rope_low_frequency", "rope_high_frequency",
             "rope_original_context"},
            true);
  if (differences.empty()) return;
  throw UserError("{}: '{}' has {}; set it to the same{}", key, from.path(), fmt::join(differences, ", "),
                  rope ? " (checkpoint.other_rope = true allows other rotations)" : "");
}

}  // namespace penstock::session
