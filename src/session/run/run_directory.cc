#include "session/run/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

// What a run was started from that did not begin with initial weights.
std::string StartFile(const std::string& path) { return path + "/start_checkpoint"; }

bool HasNoCheckpoint(const RunDirectory& directory) {
  const checkpoint::FoundCheckpoint found = checkpoint::FindNewestCheckpoint(directory.checkpoints());
  return !found.path && found.skipped.empty();
}

// One training at a time writes to a run directory. The lock goes with the process, however it ends.
std::shared_ptr<void> LockDirectory(const std::string& path) {
  const std::string file = path + "/lock";
  const int descriptor = open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (descriptor < 0) throw WorldError(fmt::format("cannot open '{}': {}", file, std::strerror(errno)));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor);
    throw UserError("run.dir: '{}' is in use by another training; wait for it, or choose another run.dir", path);
  }
  return std::shared_ptr<void>(nullptr, [descriptor](void*) { close(descriptor); });
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

std::string CheckpointsOf(const std::string& path) {
  const std::string inside = path + "/" + kCheckpointsFolder;
  return fs::is_directory(inside) ? inside : path;
}

RunDirectory InspectRunDirectory(const LoadedSettings& settings, const std::string& model_fingerprint) {
  const Settings& s = settings.values;
  RunDirectory directory;
  directory.path = DefaultDirectory(settings);
  while (directory.path.size() > 1 && directory.path.back() == '/') directory.path.pop_back();
  if (const std::string last = directory.path.substr(directory.path.rfind('/') + 1);
      last == "." || last == ".." || last.empty())
    throw UserError("run.dir: '{}' is no name of its own; name the directory itself", directory.path);
  std::error_code ignored;
  if (fs::exists(directory.path, ignored) && !fs::is_directory(directory.path, ignored))
    throw UserError("run.dir: '{}' is a file; choose another run.dir", directory.path);
  const bool explicit_checkpoint = s.checkpoint.resume != "auto" && s.checkpoint.resume != "never";
  std::string start_checkpoint = explicit_checkpoint ? s.checkpoint.resume : "";
  if (HasContent(directory.path)) {
    std::string why = WhyForeign(settings, directory.path);
    if (why.empty() && s.checkpoint.resume != "auto" && !(explicit_checkpoint && HasNoCheckpoint(directory)))
      why = "holds this run already, and checkpoint.resume is not 'auto'";
    if (!why.empty()) {
      if (!s.run.overwrite)
        throw UserError("run.dir: '{}' {}; choose another run.dir, or --set run.overwrite=true to move it aside",
                        directory.path, why);
      directory.notes.push_back(fmt::format("'{}' {}; it is moved aside", directory.path, why));
    } else if (s.run.overwrite) {
      directory.notes.push_back(fmt::format("run.overwrite: '{}' is moved aside", directory.path));
    } else {
      const checkpoint::FoundCheckpoint found = checkpoint::FindNewestCheckpoint(directory.checkpoints());
      // What was published and cannot be read is the user's work: never start over on top of it.
      for (const checkpoint::SkippedCheckpoint& skipped : found.skipped)
        if (!found.path && skipped.path.find(".tmp-") == std::string::npos)
          throw UserError(
              "none of the checkpoints in '{}' can be read ('{}': {}); restore one, or --set run.overwrite=true to "
              "move the run "
              "aside and start anew",
              directory.checkpoints(), skipped.path, skipped.reason);
      for (const checkpoint::SkippedCheckpoint& skipped : found.skipped)
        directory.notes.push_back(fmt::format("passed over '{}': {}", skipped.path, skipped.reason));
      if (found.path) {
        directory.start = RunStart::resume;
        directory.checkpoint = *found.path;
      } else if (start_checkpoint.empty() && fs::exists(StartFile(directory.path))) {
        start_checkpoint = ReadFile(StartFile(directory.path));  // killed before its first save: from where it started
      }
    }
  }
  if (!start_checkpoint.empty()) {
    directory.start = RunStart::resume;
    directory.checkpoint = checkpoint::ResolveCheckpoint(CheckpointsOf(start_checkpoint));
    directory.start_checkpoint = fs::absolute(directory.checkpoint).string();
    if (directory.start_checkpoint.rfind(fs::absolute(directory.path).string() + "/", 0) == 0)
      throw UserError("checkpoint.resume: '{}' is inside run.dir, which it would have to leave; choose another run.dir",
                      directory.checkpoint);
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
  const bool move_aside =
      HasContent(directory.path) && (settings.values.run.overwrite || !WhyForeign(settings, directory.path).empty());
  if (move_aside) {
    // Not while another training writes there: its next save would go by name, into the new run.
    std::shared_ptr<void> other;
    if (fs::exists(directory.path + "/lock")) other = LockDirectory(directory.path);
    const std::string aside = FreeName(directory.path);
    FileSystem::Real().Rename(directory.path, aside, /*overwrite=*/false);
    directory.notes.push_back(fmt::format("the former run is now '{}'", aside));
  }
  FileSystem::Real().CreateFolders(directory.path);
  directory.lock = LockDirectory(directory.path);
  if (!directory.start_checkpoint.empty())
    WriteFileAtomically(StartFile(directory.path), directory.start_checkpoint, /*overwrite=*/true);
  WriteFileAtomically(directory.path + "/run.json", ComputationOf(settings) + "\n", /*overwrite=*/true);
  WriteFileAtomically(directory.path + "/config.toml", settings.config.ResolvedToml(), /*overwrite=*/true);
}

}  // namespace penstock::session
