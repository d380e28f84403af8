// src/checkpoint/checkpoint.h
//
// Layout-free checkpoints. DIRECTORY holds
//   step-00000012/model.safetensors       full logical parameters by canonical name
//   step-00000012/optimizer.safetensors   "adamw.m/<parameter>" ...
//   step-00000012/state.json              manifest: TrainState, hash of every tensor, format version
//   latest                                the name of the checkpoint published last, one line
// A checkpoint is written to `step-00000012.tmp-XXXXXXXX`, synced, renamed, and only then named in `latest`: whoever
// is killed while saving leaves the previous one intact. The directory has one writer at a time; the writer removes
// leftovers of killed saves. Format: docs/formats/checkpoint.md.
//
// Memory: one tensor of the source at a time, plus kCopyBuffer while hashes are verified.
// Errors: UserError for files that are not valid checkpoints (names file and tensor), WorldError when the disk fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_source.h"

namespace penstock::checkpoint {

inline constexpr int kCheckpointVersion = 1;
inline constexpr size_t kCopyBuffer = size_t{4} << 20;

// All that a run needs to go on, besides tensors. Nothing here depends on the layout.
struct TrainState {
  int64_t step = 0;             // steps finished
  int64_t applied_updates = 0;  // of these, updates that were applied (not skipped)
  int64_t samples_seen = 0;     // position in the global sample order
  uint64_t seed = 0;
  double loss_scale = 1.0;
  std::string model_fingerprint;           // refuses another model
  std::string environment;                 // fingerprint of docs/numerics.md; a difference is only reported
  std::string config;                      // resolved config text (TOML)
  std::map<std::string, std::string> extra;  // further state of modules, by "module.key"

  friend bool operator==(const TrainState&, const TrainState&) = default;
};

struct SaveOptions {
  int keep_last = 0;  // 0: keep all; k: the k checkpoints saved last
};

// Saves and publishes; returns the path of the new checkpoint. A checkpoint of the same step is replaced.
std::string SaveCheckpoint(const std::string& directory, const TrainState& state, const TensorSource& model,
                           const TensorSource& optimizer, const SaveOptions& options = {});

// An opened checkpoint. Opening parses the manifest and both headers and checks that they name the same tensors;
// tensors are verified against the manifest's hashes when they are read, or all at once by Verify.
class Checkpoint {
 public:
  // `path` is the directory of one checkpoint.
  explicit Checkpoint(const std::string& path);

  const std::string& path() const { return path_; }
  const TrainState& state() const { return state_; }
  const SafetensorsReader& model() const { return model_; }
  const SafetensorsReader& optimizer() const { return optimizer_; }

  // UserError when the checkpoint is of another model.
  void RequireModel(const std::string& fingerprint) const;
  // Full tensor, hash verified. UserError when it is missing, or dtype or shape differ from `expected`.
  at::Tensor ReadModel(const TensorSpec& expected) const { return ReadVerified(model_, expected); }
  at::Tensor ReadOptimizer(const TensorSpec& expected) const { return ReadVerified(optimizer_, expected); }
  // Hashes everything in pieces of kCopyBuffer.
  void Verify() const;

 private:
  at::Tensor ReadVerified(const SafetensorsReader& reader, const TensorSpec& expected) const;

  std::string path_;
  TrainState state_;
  SafetensorsReader model_;
  SafetensorsReader optimizer_;
  std::map<std::string, std::string> hashes_;  // "model/<name>", "optimizer/<name>"
};

struct SkippedCheckpoint {
  std::string path;
  std::string reason;
};

struct FoundCheckpoint {
  std::optional<std::string> path;         // of the valid checkpoint that was saved last
  std::vector<SkippedCheckpoint> skipped;  // what was passed over, and why: show it
};

// Looks for the checkpoint saved last in `directory` that is complete and whose hashes all match. An absent or empty
// directory finds nothing.
FoundCheckpoint FindNewestCheckpoint(const std::string& directory);

// `path` is a checkpoint, or a directory of checkpoints (then the newest valid one). UserError when there is none.
std::string ResolveCheckpoint(const std::string& path);

}  // namespace penstock::checkpoint
