#include "session/run/start_weights.h"

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
  LoadedSettings there;
  there.config.LoadText(weights->state().config, weights->path() + " (its configuration)");
  const nlohmann::ordered_json ours = settings.config.Json().at("model"), theirs = there.config.Json().at("model");
  // The fingerprint holds names and shapes; these make another function of the same tensors.
  for (const char* key : {"heads", "norm_eps", "rope_base", "rope_scaling", "rope_factor", "rope_low_frequency",
                          "rope_high_frequency", "rope_original_context"})
    if (ours.at(key) != theirs.at(key))
      throw UserError("checkpoint.weights: '{}' has model.{} = {} and this run {}; set it to the same", path, key,
                      theirs.at(key).dump(), ours.at(key).dump());
  if (run.text.tokenizer != nullptr) RequireTokenizer(weights->state(), weights->path(), *run.text.tokenizer);
  return weights;
}

}  // namespace penstock::session
