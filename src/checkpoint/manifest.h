// src/checkpoint/manifest.h
//
// state.json of a checkpoint: what a run needs to go on besides tensors, and the hash of every tensor. The text
// carries a hash of itself, so that a damaged manifest is noticed too.
// Errors: UserError that names the file. Stateless; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace penstock::checkpoint {

inline constexpr int kCheckpointVersion = 1;

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

struct Manifest {
  TrainState state{};
  int64_t sequence = 0;                               // counts the saves into one directory: which is newest
  std::map<std::string, std::string> model_hashes{};  // by tensor
  std::map<std::string, std::string> optimizer_hashes{};

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

std::string FormatManifest(const Manifest& manifest);
Manifest ParseManifest(std::string_view text, const std::string& file);

}  // namespace penstock::checkpoint
