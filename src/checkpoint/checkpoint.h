// src/checkpoint/checkpoint.h
//
// Layout-free checkpoints. A directory holds
//   step-00000012/shard-00001-of-00004.safetensors ...   pieces of full logical tensors, by canonical name; optimizer
//                                                        states are "adamw.m/<parameter>" ...
//   step-00000012/state.json                             manifest (checkpoint/manifest.h): which piece is where, hashes
//   step-00000012/next_step.json                         what the first step after it must give
//   (checkpoint/next_step.h) latest                                               the name of the checkpoint saved
//   last, one line
// How many shards there are, and how tensors are cut, is the writers' affair (checkpoint/publish.h); any number of
// ranks in any layout reads them. A save that fails or is killed leaves the previous checkpoint intact. The directory
// has one saving run at a time, which removes what killed saves left behind.
//
// Memory: SaveCheckpoint one tensor of the source at a time; Verify kCopyBuffer; reading the tensor that is asked for.
// Errors: UserError for files that are not valid checkpoints (names file, tensor and rule), WorldError when the disk
// fails. Threads: one per directory for saving; an opened Checkpoint may be read by any number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "checkpoint/directory.h"
#include "checkpoint/manifest.h"
#include "checkpoint/publish.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_source.h"

namespace penstock::checkpoint {

inline constexpr size_t kCopyBuffer = size_t{4} << 20;

// Saves by one writer, and publishes; returns the path of the new checkpoint. A checkpoint of the same step is
// replaced.
std::string SaveCheckpoint(const std::string& directory, const TrainState& state, const TensorSource& model,
                           const TensorSource& optimizer, const SaveOptions& options = {});

// An opened checkpoint. Opening parses the manifest and the headers of all shards and checks that they are what was
// written; tensors are verified against their hashes when they are read whole, or all at once by Verify.
class Checkpoint {
 public:
  // `path` is the directory of one checkpoint.
  explicit Checkpoint(const std::string& path, FileSystem& files = FileSystem::Real());

  const std::string& path() const { return path_; }
  const TrainState& state() const { return manifest_.state; }
  const Manifest& manifest() const { return manifest_; }
  const std::map<std::string, StoredTensor>& model() const { return manifest_.model; }
  const std::map<std::string, StoredTensor>& optimizer() const { return manifest_.optimizer; }
  std::string FilePath(int file) const { return path_ + "/" + manifest_.files[file].name; }

  // UserError when the checkpoint is of another model.
  void RequireModel(const std::string& fingerprint) const;
  // UserError when the tensor is missing, or its type or shape differ.
  void RequireModel(const TensorSpec& expected) const { Find(Piece::Of::model, expected); }
  void RequireOptimizer(const TensorSpec& expected) const { Find(Piece::Of::optimizer, expected); }
  // Full tensor, hashes verified. UserError as RequireModel and RequireOptimizer.
  at::Tensor ReadModel(const TensorSpec& expected) const { return Read(Find(Piece::Of::model, expected)); }
  // The same in the type that was written, whichever.
  at::Tensor ReadModel(const std::string& name, const std::vector<int64_t>& shape) const;
  at::Tensor ReadOptimizer(const TensorSpec& expected) const { return Read(Find(Piece::Of::optimizer, expected)); }
  // Elements [first, first + count) of the flattened tensor, for a rank that owns a part; may lie in several shards.
  // Not verified, because the hashes are of whole pieces: call Verify before, on one rank or on all.
  at::Tensor ReadModelElements(const TensorSpec& expected, int64_t first, int64_t count) const;
  at::Tensor ReadOptimizerElements(const TensorSpec& expected, int64_t first, int64_t count) const;
  // Hashes everything in pieces of kCopyBuffer.
  void Verify() const;
  // The hash (checkpoint/tensor_hash.h) of a whole tensor, however it is cut; verifies on the way, in the same memory.
  std::string WholeHash(const StoredTensor& tensor) const;

 private:
  const StoredTensor& Find(Piece::Of of, const TensorSpec& expected) const;
  at::Tensor Read(const StoredTensor& tensor) const;
  at::Tensor ReadElements(const StoredTensor& tensor, int64_t first, int64_t count) const;
  // Hands out the bytes of all pieces in order, in parts, and holds each piece against its hash.
  void Stream(const StoredTensor& tensor, std::vector<char>& buffer,
              const std::function<void(std::string_view)>& take) const;
  void OpenFile(size_t file, FileSystem& files);
  bool Describes(const std::string& entry, int file) const;
  [[noreturn]] void FailHash(const StoredPiece& piece, const std::string& name) const;
  std::string Holds(size_t file) const;  // "; it holds 'a', 'b' and 3 more tensors"

  std::string path_;
  Manifest manifest_;
  std::vector<SafetensorsReader> readers_;  // by file
};

struct SkippedCheckpoint {
  std::string path;
  std::string reason;
  EntryKind kind = EntryKind::published;  // temporary: only the rest of a killed save
  std::optional<int64_t> sequence;        // of its save (Manifest), where the manifest can be read
};

struct FoundCheckpoint {
  std::optional<std::string> path;         // of the valid checkpoint that was saved last
  std::vector<SkippedCheckpoint> skipped;  // what was passed over, and why: show it
};

// Looks for the checkpoint saved last in `directory` that is complete and whose hashes all match. A directory that is
// not there finds nothing. WorldError where one cannot be read for reasons that are not its contents (no permission, a
// disk that does not answer): it may be the newest one.
FoundCheckpoint FindNewestCheckpoint(const std::string& directory, FileSystem& files = FileSystem::Real());

// `path` is a checkpoint, or a directory of checkpoints (then the newest valid one, with a warning on standard error
// for every damaged one that was passed over). UserError when there is none.
std::string ResolveCheckpoint(const std::string& path, FileSystem& files = FileSystem::Real());

}  // namespace penstock::checkpoint
