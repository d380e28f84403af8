#include "session/run/run_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "checkpoint/checkpoint.h"
#include "session/run/prepare.h"

namespace penstock::session {
namespace {

namespace fs = std::filesystem;

std::string DefaultDirectory(const LoadedSettings& settings) {
  if (!settings.values.run.dir.empty()) return settings.values.run.dir;
  return (fs::path("runs") / fs::path(settings.path).stem()).string();
}

constexpr const char* kLock = "lock";
constexpr const char* kRecord = "run.json";
constexpr const char* kStart = "start_checkpoint";

// "run.json.1234.0.tmp" for "run.json": what an AtomicFile leaves that was killed.
bool IsLeftOver(const std::string& name, const std::string& of) {
  return name.rfind(of + ".", 0) == 0 && name.size() > of.size() + 5 && name.rfind(".tmp") == name.size() - 4 &&
         name.find_first_not_of("0123456789.", of.size()) == name.size() - 3;
}

// May be in a directory before the record of a run is, whose start was killed: the rest of no run.
bool IsOfAKilledStart(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  if (!entry.is_regular_file()) return false;
  return (name == kLock && entry.file_size() == 0) || name == kStart || IsLeftOver(name, kStart) ||
         IsLeftOver(name, kRecord);
}

bool HasContent(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  fs::directory_iterator entries(path, error);
  if (error) return true;
  return !std::all_of(entries, fs::directory_iterator(), IsOfAKilledStart);
}

// What a run was started from that did not begin with initial weights.
std::string StartFile(const std::string& path) { return path + "/" + kStart; }

bool IsRestOfAKilledSave(const checkpoint::SkippedCheckpoint& skipped) {
  return skipped.kind == checkpoint::EntryKind::temporary;
}

bool HasNoCheckpoint(const RunDirectory& directory) {
  const checkpoint::FoundCheckpoint found = checkpoint::FindNewestCheckpoint(directory.checkpoints());
  return !found.path && std::all_of(found.skipped.begin(), found.skipped.end(), IsRestOfAKilledSave);
}

// One training at a time looks at a run directory and writes to it. The lock goes with the process, however it ends,
// and with the directory, wherever that is moved.
std::shared_ptr<void> LockDirectory(const std::string& path) {
  const std::string file = path + "/" + kLock;
  const int descriptor = open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (descriptor < 0) throw WorldError(fmt::format("cannot open '{}': {}", file, std::strerror(errno)));
  const std::shared_ptr<void> lock(new int(descriptor), [](int* held) {
    close(*held);
    delete held;
  });
  bool held;
  try {
    held = LockDescriptor(descriptor, file);
  } catch (const WorldError& error) {
    // Two trainings in one directory would remove each other's checkpoints, and nobody could tell.
    throw WorldError(fmt::format("{}; choose a run.dir on a file system with locks (flock)", error.what()));
  }
  // Between opening and locking the former holder may have moved the directory aside, with this file.
  struct stat here, there;
  if (!held || fstat(descriptor, &here) != 0 || stat(file.c_str(), &there) != 0 || here.st_ino != there.st_ino)
    throw UserError("run.dir: '{}' is in use by another training; wait for it, or choose another run.dir", path);
  return lock;
}

// Before a directory is looked at that holds a run, or the start of one. Null for others: nothing is put into what may
// be somebody else's, and nothing can be started where nothing can be written.
std::shared_ptr<void> LockRun(const std::string& path) {
  if (!fs::exists(path + "/" + kLock) && !fs::exists(path + "/" + kRecord)) return nullptr;
  if (access(path.c_str(), W_OK) != 0) return nullptr;
  return LockDirectory(path);
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
  const std::string record = path + "/" + kRecord;
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
  directory.lock = LockRun(directory.path);
  const bool explicit_checkpoint = s.checkpoint.resume != "auto" && s.checkpoint.resume != "never";
  std::string start_checkpoint = explicit_checkpoint ? s.checkpoint.resume : "";
  if (HasContent(directory.path)) {
    directory.move_aside = s.run.overwrite;
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
        if (!found.path && !IsRestOfAKilledSave(skipped))
          throw UserError(
              "none of the checkpoints in '{}' can be read ('{}': {}); restore one, or --set run.overwrite=true to "
              "move the run "
              "aside and start anew",
              directory.checkpoints(), skipped.path, skipped.reason);
      for (const checkpoint::SkippedCheckpoint& skipped : found.skipped) {
        directory.notes.push_back(fmt::format("passed over '{}': {}", skipped.path, skipped.reason));
        if (skipped.sequence) directory.damaged.push_back(*skipped.sequence);
      }
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
  if (directory.move_aside) {
    // Not while another training writes there: its next save would go by name, into the new run.
    std::shared_ptr<void> former = std::move(directory.lock);
    if (!former) former = LockRun(directory.path);
    const std::string aside = FreeName(directory.path);
    FileSystem::Real().Rename(directory.path, aside, /*overwrite=*/false);
    directory.notes.push_back(fmt::format("the former run is now '{}'", aside));
  }
  if (!directory.lock) {
    FileSystem::Real().CreateFolders(directory.path);
    if (access(directory.path.c_str(), W_OK) != 0)
      throw WorldError(fmt::format("run.dir: cannot write in '{}': {}", directory.path, std::strerror(errno)));
    directory.lock = LockDirectory(directory.path);
    // It was decided for a directory without a run, before there was anything to lock.
    if (HasContent(directory.path))
      throw WorldError(
          fmt::format("run.dir: '{}' was filled by another training meanwhile; start again to go on with it, or "
                      "choose another run.dir",
                      directory.path));
  }
  if (!directory.start_checkpoint.empty())
    WriteFileAtomically(StartFile(directory.path), directory.start_checkpoint, /*overwrite=*/true);
  else if (!fs::exists(directory.path + "/" + kRecord))
    FileSystem::Real().Remove(StartFile(directory.path));  // of a start that was killed before it said what it computes
  WriteFileAtomically(directory.path + "/" + kRecord, ComputationOf(settings) + "\n", /*overwrite=*/true);
  WriteFileAtomically(directory.path + "/config.toml", settings.config.ResolvedToml(), /*overwrite=*/true);
}

}  // namespace penstock::session
