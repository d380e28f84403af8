// Publishing a checkpoint. Every step that changes something goes through the FileSystem seam, and a fault after any
// of them leaves at least the previous checkpoint valid (tests/checkpoint/crash_test.cc tries each).

#include "checkpoint/publish.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/directory.h"

namespace penstock::checkpoint {
namespace {

// Checkpoints of a kind with the count of their save, in order of it. Damaged ones are not listed: they are not ours to
// count or to remove. One that cannot be read now (WorldError) ends it: a count without the newest would be given
// twice.
std::vector<std::pair<int64_t, std::string>> BySequence(const std::string& directory, EntryKind kind,
                                                        FileSystem& files) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : EntriesOfKind(directory, kind, files)) {
    const std::string file = directory + "/" + name + "/" + kManifestFile;
    try {
      found.emplace_back(ParseManifest(ReadFile(file, files), file).sequence, name);
    } catch (const UserError&) {
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

// What a swap left that was interrupted. Where it was done, or done again, the former checkpoint goes; where nothing
// has the name, it gets its name back: it is the only one of its step, and which checkpoints go is decided elsewhere.
void FinishSwaps(const std::string& directory, FileSystem& files) {
  auto replaced = BySequence(directory, EntryKind::replaced, files);
  for (; !replaced.empty(); replaced.pop_back()) {  // the newest of a step first
    const std::string& name = replaced.back().second;
    const std::string target = directory + "/" + name.substr(0, name.find(".replaced-"));
    if (files.Exists(target)) continue;
    files.Rename(directory + "/" + name, target, /*overwrite=*/false);
    files.SyncFolder(directory);
  }
  for (const std::string& name : EntriesOfKind(directory, EntryKind::replaced, files))
    if (files.Exists(directory + "/" + name.substr(0, name.find(".replaced-"))))
      files.RemoveAll(directory + "/" + name);
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

// "step-00000012" -> 12.
int64_t StepOf(const std::string& name) { return std::stoll(name.substr(name.find('-') + 1)); }

void Prune(const std::string& directory, const SaveOptions& options) {
  if (options.keep_last <= 0) return;
  auto saved = BySequence(directory, EntryKind::published, options.files);
  std::erase_if(saved, [&](const auto& entry) {
    return std::find(options.damaged.begin(), options.damaged.end(), entry.first) != options.damaged.end();
  });
  for (size_t i = 0; i + static_cast<size_t>(options.keep_last) < saved.size(); ++i) {
    const std::string& name = saved[i].second;
    if (options.keep_every > 0 && StepOf(name) % options.keep_every == 0) continue;
    // Removing a folder is not atomic: under its own name a half of it would look like a damaged checkpoint.
    const std::string aside = fmt::format("{}/{}.tmp-pruned-{}", directory, name, ::getpid());
    options.files.Rename(directory + "/" + name, aside, /*overwrite=*/false);
    options.files.RemoveAll(aside);
  }
}

void AddShard(Manifest& manifest, const ShardRecord& shard) {
  const int file = static_cast<int>(manifest.files.size());
  manifest.files.push_back(shard.file);
  for (size_t i = 0; i < shard.pieces.size(); ++i) {
    const Piece& piece = shard.pieces[i];
    auto& tensors = piece.of == Piece::Of::model ? manifest.model : manifest.optimizer;
    StoredTensor& tensor = tensors[piece.tensor.name];
    PENSTOCK_CHECK(tensor.pieces.empty() || tensor.spec == piece.tensor, "two shards see '{}' differently",
                   piece.tensor.name);
    tensor.spec = piece.tensor;
    tensor.pieces.push_back({file, piece.begin, piece.end, shard.hashes[i]});
  }
}

void SortPieces(std::map<std::string, StoredTensor>& tensors) {
  for (auto& [name, tensor] : tensors) {
    std::sort(tensor.pieces.begin(), tensor.pieces.end(),
              [](const StoredPiece& a, const StoredPiece& b) { return a.begin < b.begin; });
    int64_t at = 0;
    for (const StoredPiece& piece : tensor.pieces) {
      PENSTOCK_CHECK_EQ(piece.begin, at);
      at = piece.end;
    }
    PENSTOCK_CHECK(at == tensor.spec.numel(), "'{}': the shards hold {} of {} elements", name, at, tensor.spec.numel());
  }
}

}  // namespace

PendingCheckpoint BeginCheckpoint(const std::string& directory, int64_t step, FileSystem& files) {
  PENSTOCK_CHECK(step >= 0, "step {}", step);
  files.CreateFolders(directory);
  CleanUp([&] { RemoveEntries(directory, EntryKind::temporary, files); });
  static std::atomic<int> counter{0};
  PendingCheckpoint pending{
      directory, step, fmt::format("{}/{}.tmp-{}-{}", directory, StepName(step), ::getpid(), counter.fetch_add(1))};
  try {
    files.CreateFolders(pending.folder);
  } catch (...) {
    AbandonCheckpoint(pending, files);
    throw;
  }
  return pending;
}

std::string PublishCheckpoint(const PendingCheckpoint& pending, const TrainState& state,
                              const std::vector<ShardRecord>& shards, const SaveOptions& options) {
  PENSTOCK_CHECK(options.keep_last >= 0 && options.keep_every >= 0 && state.step == pending.step,
                 "keep_last {}, keep_every {}, step {} of {}", options.keep_last, options.keep_every, state.step,
                 pending.step);
  FileSystem& files = options.files;
  const std::string& directory = pending.directory;
  const std::string target = directory + "/" + StepName(state.step);
  std::string replaced = pending.folder;
  replaced.replace(replaced.rfind(".tmp-"), 5, ".replaced-");
  bool set_aside = false;
  try {
    Manifest manifest{.state = state, .sequence = NextSequence(directory, files)};
    for (const ShardRecord& shard : shards) AddShard(manifest, shard);
    SortPieces(manifest.model);
    SortPieces(manifest.optimizer);
    const std::unique_ptr<WritableFile> file = files.Create(pending.folder + "/" + kManifestFile);
    file->Append(FormatManifest(manifest));
    file->Sync();
    file->Close();
    files.SyncFolder(pending.folder);
    if (files.Exists(target)) {
      files.Rename(target, replaced, /*overwrite=*/false);
      set_aside = true;
    }
    files.Rename(pending.folder, target, /*overwrite=*/false);
    set_aside = false;
    files.SyncFolder(directory);
  } catch (...) {
    CleanUp([&] {
      if (set_aside) files.Rename(replaced, target, /*overwrite=*/false);
      files.RemoveAll(pending.folder);
    });
    throw;
  }
  WriteFileAtomically(directory + "/" + kLatest, StepName(state.step) + "\n", /*overwrite=*/true, files);
  CleanUp([&] { FinishSwaps(directory, files); });
  CleanUp([&] { Prune(directory, options); });
  return target;
}

void RemoveUnfinished(const std::string& directory, FileSystem& files) {
  CleanUp([&] { RemoveEntries(directory, EntryKind::temporary, files); });
}

void AbandonCheckpoint(const PendingCheckpoint& pending, FileSystem& files) {
  CleanUp([&] { files.RemoveAll(pending.folder); });
}

}  // namespace penstock::checkpoint
