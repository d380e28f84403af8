// src/checkpoint/checkpoint.h
//
// Layout-free checkpoints. A directory holds
//   step-00000012/model.safetensors       full logical parameters by canonical name
//   step-00000012/optimizer.safetensors   "adamw.m/<parameter>" ...
//   step-00000012/state.json              manifest (checkpoint/manifest.h)
//   latest                                the name of the checkpoint saved last, one line
// A checkpoint is written to `step-00000012.tmp-...`, synced, renamed, and only then named in `latest`: a save that
// fails or is killed leaves the previous checkpoint intact. The directory has one writer at a time, which removes what
// killed saves left behind.
//
// Memory: one tensor of the source at a time, plus kCopyBuffer while hashes are verified.
// Errors: UserError for files that are not valid checkpoints (names file, tensor and rule), WorldError when the disk
// fails. Threads: one per directory for saving; an opened Checkpoint may be read by any number.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_source.h"

namespace penstock::checkpoint {

inline constexpr size_t kCopyBuffer = size_t{4} << 20;

struct SaveOptions {
  int keep_last = 0;  // 0: keep all; k: the k checkpoints saved last
  FileSystem& files = FileSystem::Real();
};

// Saves and publishes; returns the path of the new checkpoint. A checkpoint of the same step is replaced.
std::string SaveCheckpoint(const std::string& directory, const TrainState& state, const TensorSource& model,
                           const TensorSource& optimizer, const SaveOptions& options = {});

// An opened checkpoint. Opening parses the manifest and both headers and checks that they name the same tensors;
// tensors are verified against the manifest's hashes when they are read whole, or all at once by Verify.
class Checkpoint {
 public:
  // `path` is the directory of one checkpoint.
  explicit Checkpoint(const std::string& path, FileSystem& files = FileSystem::Real());

  const std::string& path() const { return path_; }
  const TrainState& state() const { return manifest_.state; }
  const Manifest& manifest() const { return manifest_; }
  // For reading shards (ReadElements), not verified: call Verify before, on one rank or on all.
  const SafetensorsReader& model() const { return model_; }
  const SafetensorsReader& optimizer() const { return optimizer_; }

  // UserError when the checkpoint is of another model.
  void RequireModel(const std::string& fingerprint) const;
  // Full tensor, hash verified. UserError when it is missing, or dtype or shape differ from `expected`.
  at::Tensor ReadModel(const TensorSpec& expected) const;
  at::Tensor ReadOptimizer(const TensorSpec& expected) const;
  // Hashes everything in pieces of kCopyBuffer.
  void Verify() const;

 private:
  std::string path_;
  Manifest manifest_;
  SafetensorsReader model_;
  SafetensorsReader optimizer_;
};

struct SkippedCheckpoint {
  std::string path;
  std::string reason;
};

struct FoundCheckpoint {
  std::optional<std::string> path;         // of the valid checkpoint that was saved last
  std::vector<SkippedCheckpoint> skipped;  // what was passed over, and why: show it
};

// Looks for the checkpoint saved last in `directory` that is complete and whose hashes all match. A directory that is
// not there finds nothing.
FoundCheckpoint FindNewestCheckpoint(const std::string& directory, FileSystem& files = FileSystem::Real());

// `path` is a checkpoint, or a directory of checkpoints (then the newest valid one). UserError when there is none.
std::string ResolveCheckpoint(const std::string& path, FileSystem& files = FileSystem::Real());

}  // namespace penstock::checkpoint
