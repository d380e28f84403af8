// Publishing a checkpoint. Every step that changes something goes through the FileSystem seam, and a fault after any
// of them leaves at least the previous checkpoint valid (tests/checkpoint/crash_test.cc tries each).

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/directory.h"

namespace penstock::checkpoint {
namespace {

// Checkpoints of a kind with the count of their save, in order of it. Unreadable ones are not listed: they are not ours
// to count or to remove.
std::vector<std::pair<int64_t, std::string>> BySequence(const std::string& directory, EntryKind kind,
                                                        FileSystem& files) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : EntriesOfKind(directory, kind, files)) {
    const std::string file = directory + "/" + name + "/" + kManifestFile;
    try {
      found.emplace_back(ParseManifest(ReadFile(file, files), file).sequence, name);
    } catch (const Error&) {
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

int64_t NextSequence(const std::string& directory, FileSystem& files) {
  int64_t last = 0;
  for (const EntryKind kind : {EntryKind::published, EntryKind::replaced})
    if (const auto saved = BySequence(directory, kind, files); !saved.empty())
      last = std::max(last, saved.back().first);
  return last + 1;
}

void RemoveEntries(const std::string& directory, EntryKind kind, FileSystem& files) {
  for (const std::string& name : EntriesOfKind(directory, kind, files)) files.RemoveAll(directory + "/" + name);
}

// What a failed clean-up leaves behind costs space, not the run: the checkpoint itself is published.
template <typename F>
void CleanUp(const F& action) {
  try {
    action();
  } catch (const Error& e) {
    log::Warning("checkpoint clean-up: {}", e.what());
  }
}

void Prune(const std::string& directory, int keep_last, FileSystem& files) {
  if (keep_last <= 0) return;
  const auto saved = BySequence(directory, EntryKind::published, files);
  for (size_t i = 0; i + static_cast<size_t>(keep_last) < saved.size(); ++i)
    files.RemoveAll(directory + "/" + saved[i].second);
}

}  // namespace

std::string SaveCheckpoint(const std::string& directory, const TrainState& state, const TensorSource& model,
                           const TensorSource& optimizer, const SaveOptions& options) {
  FileSystem& files = options.files;
  PENSTOCK_CHECK(state.step >= 0 && options.keep_last >= 0, "step {}, keep_last {}", state.step, options.keep_last);
  files.CreateFolders(directory);
  CleanUp([&] { RemoveEntries(directory, EntryKind::temporary, files); });

  static std::atomic<int> counter{0};
  const std::string unique = fmt::format("{}-{}", ::getpid(), counter.fetch_add(1));
  const std::string target = directory + "/" + StepName(state.step);
  const std::string temporary = target + ".tmp-" + unique;
  const std::string replaced = target + ".replaced-" + unique;
  bool set_aside = false;
  try {
    files.CreateFolders(temporary);
    Manifest manifest{.state = state, .sequence = NextSequence(directory, files)};
    // "pt" is what other readers of the format expect of row-major tensors.
    manifest.model_hashes = WriteSafetensors(temporary + "/" + kModelFile, model, {{"format", "pt"}}, files);
    manifest.optimizer_hashes =
        WriteSafetensors(temporary + "/" + kOptimizerFile, optimizer, {{"format", "pt"}}, files);
    const std::unique_ptr<WritableFile> file = files.Create(temporary + "/" + kManifestFile);
    file->Append(FormatManifest(manifest));
    file->Sync();
    file->Close();
    files.SyncFolder(temporary);
    if (files.Exists(target)) {
      files.Rename(target, replaced, /*overwrite=*/false);
      set_aside = true;
    }
    files.Rename(temporary, target, /*overwrite=*/false);
    set_aside = false;
    files.SyncFolder(directory);
  } catch (...) {
    CleanUp([&] {
      if (set_aside) files.Rename(replaced, target, /*overwrite=*/false);
      files.RemoveAll(temporary);
    });
    throw;
  }
  WriteFileAtomically(directory + "/" + kLatest, StepName(state.step) + "\n", /*overwrite=*/true, files);
  CleanUp([&] { RemoveEntries(directory, EntryKind::replaced, files); });
  CleanUp([&] { Prune(directory, options.keep_last, files); });
  return target;
}

}  // namespace penstock::checkpoint
