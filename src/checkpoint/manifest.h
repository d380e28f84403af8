// src/checkpoint/manifest.h
//
// state.json of a checkpoint: what a run needs to go on besides tensors, and where every tensor lies, with hashes. The
// text carries a hash of itself, so that a damaged manifest is noticed too. Format: docs/formats/checkpoint.md.
// Errors: UserError that names the file. Stateless; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace penstock::checkpoint {

inline constexpr int kCheckpointVersion = 2;

// All that a run needs to go on, besides tensors. Nothing here depends on the layout.
struct TrainState {
  int64_t step = 0;             // steps finished
  int64_t applied_updates = 0;  // of these, updates that were applied (not skipped)
  int64_t samples_seen = 0;     // position in the global sample order
  uint64_t seed = 0;
  double loss_scale = 1.0;
  std::string model_fingerprint{};             // another model is refused
  std::string environment{};                   // fingerprint of docs/numerics.md; a difference is only reported
  std::string config{};                        // resolved config text (TOML)
  std::map<std::string, std::string> extra{};  // further state of modules, by "module.key"

  friend bool operator==(const TrainState&, const TrainState&) = default;
};

// A shard file: what one writer wrote.
struct StoredFile {
  std::string name{};         // inside the checkpoint's folder
  int64_t bytes = 0;          // of the whole file; 0: not recorded (version 1)
  std::string header_hash{};  // of its length prefix and header; empty: not recorded (version 1)

  friend bool operator==(const StoredFile&, const StoredFile&) = default;
};

// Elements [begin, end) of a flattened tensor, as a tensor of a shard file: the tensor itself where the piece is all of
// it, else one of rank 1 (PieceName).
struct StoredPiece {
  int file = 0;  // index in Manifest::files
  int64_t begin = 0;
  int64_t end = 0;
  std::string hash{};  // checkpoint/tensor_hash.h, of the tensor in the shard file

  friend bool operator==(const StoredPiece&, const StoredPiece&) = default;
};

struct StoredTensor {
  TensorSpec spec{};
  std::vector<StoredPiece> pieces{};  // ascending, without gap or overlap

  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

struct Manifest {
  TrainState state{};
  int64_t sequence = 0;  // counts the saves into one directory: which is newest
  std::vector<StoredFile> files{};
  std::map<std::string, StoredTensor> model{};      // by name
  std::map<std::string, StoredTensor> optimizer{};  // by name
  int version = kCheckpointVersion;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// "blocks.0.mlp.fc1.weight", or with "[1024:2048]" when the piece is only a part.
std::string PieceName(const TensorSpec& tensor, int64_t begin, int64_t end);
// What the piece is in its shard file.
TensorSpec PieceSpec(const TensorSpec& tensor, int64_t begin, int64_t end);

std::string FormatManifest(const Manifest& manifest);
// Of version 1 (one file for the model, one for the optimizer) the shapes are not in the manifest: the specs have a
// name only, the one piece of each tensor is [0, 0); whoever opens the files fills them in.
Manifest ParseManifest(std::string_view text, const std::string& file);

}  // namespace penstock::checkpoint
