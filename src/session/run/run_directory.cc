#include "session/run/run_directory.h"

#include <nlohmann/json.hpp>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "session/run/prepare.h"

namespace penstock::session {
namespace {

namespace fs = std::filesystem;

std::string DefaultDirectory(const LoadedSettings& settings) {
  if (!settings.values.run.dir.empty()) return settings.values.run.dir;
  return (fs::path("runs") / fs::path(settings.path).stem()).string();
}

bool HasContent(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !(fs::is_directory(path, ignored) && fs::is_empty(path, ignored));
}

std::string FreeName(const std::string& path) {
  for (int k = 1;; ++k) {
    std::string candidate = fmt::format("{}.old-{}", path, k);
    if (!fs::exists(candidate)) return candidate;
  }
}

// Why the directory cannot be used for this run; empty when it can.
std::string WhyForeign(const LoadedSettings& settings, const std::string& path) {
  if (!fs::is_directory(path)) return "is not a directory";
  const std::string record = path + "/run.json";
  if (!fs::exists(record)) return "is not empty and holds no run";
  const std::string difference = FirstDifference(ComputationOf(settings), ReadFile(record));
  return difference.empty() ? "" : "holds another run: " + difference;
}

}  // namespace

RunDirectory InspectRunDirectory(const LoadedSettings& settings, const std::string& model_fingerprint) {
  const Settings& s = settings.values;
  RunDirectory directory;
  directory.path = DefaultDirectory(settings);
  while (directory.path.size() > 1 && directory.path.back() == '/') directory.path.pop_back();
  const bool explicit_checkpoint = s.checkpoint.resume != "auto" && s.checkpoint.resume != "never";
  if (HasContent(directory.path)) {
    std::string why = WhyForeign(settings, directory.path);
    if (why.empty() && s.checkpoint.resume != "auto") why = "holds this run already, and checkpoint.resume is not 'auto'";
    if (!why.empty()) {
      if (!s.run.overwrite)
        throw UserError("run.dir: '{}' {}; choose another run.dir, or --set run.overwrite=true to move it aside", directory.path, why);
      directory.notes.push_back(fmt::format("'{}' {}; it is moved aside", directory.path, why));
    } else if (s.run.overwrite) {
      directory.notes.push_back(fmt::format("run.overwrite: '{}' is moved aside", directory.path));
    } else {
      const checkpoint::FoundCheckpoint found = checkpoint::FindNewestCheckpoint(directory.checkpoints());
      for (const checkpoint::SkippedCheckpoint& skipped : found.skipped)
        directory.notes.push_back(fmt::format("passed over '{}': {}", skipped.path, skipped.reason));
      if (found.path) {
        directory.start = RunStart::resume;
        directory.checkpoint = *found.path;
      }
    }
  }
  if (explicit_checkpoint) {
    directory.start = RunStart::resume;
    directory.checkpoint = checkpoint::ResolveCheckpoint(s.checkpoint.resume);
  }
  if (!directory.checkpoint.empty()) {
    const checkpoint::Checkpoint opened(directory.checkpoint);
    opened.RequireModel(model_fingerprint);
    directory.first_step = opened.state().step;
    if (directory.first_step >= s.train.steps) directory.start = RunStart::complete;
  }
  return directory;
}

void OpenRunDirectory(RunDirectory& directory, const LoadedSettings& settings) {
  const bool move_aside = HasContent(directory.path) &&
                          (settings.values.run.overwrite || !WhyForeign(settings, directory.path).empty());
  if (move_aside) {
    const std::string aside = FreeName(directory.path);
    FileSystem::Real().Rename(directory.path, aside, /*overwrite=*/false);
    directory.notes.push_back(fmt::format("the former run is now '{}'", aside));
  }
  FileSystem::Real().CreateFolders(directory.path);
  WriteFileAtomically(directory.path + "/run.json", ComputationOf(settings) + "\n", /*overwrite=*/true);
  WriteFileAtomically(directory.path + "/config.toml", settings.config.ResolvedToml(), /*overwrite=*/true);
}

}  // namespace penstock::session
