// src/checkpoint/directory.h
//
// Names inside a directory of checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace penstock::checkpoint {

inline constexpr const char* kLatest = "latest";
inline constexpr const char* kManifestFile = "state.json";
inline constexpr const char* kNextStepFile = "next_step.json";  // checkpoint/next_step.h
inline constexpr const char* kVersion1ModelFile = "model.safetensors";
inline constexpr const char* kVersion1OptimizerFile = "optimizer.safetensors";

// "shard-00001-of-00004.safetensors" for shard 0 of 4.
std::string ShardName(int shard, int shards);

// "step-00000012".
std::string StepName(int64_t step);

// published: step-N. replaced: step-N.replaced-X, a checkpoint that was set aside while one of the same step was being
// published; valid until that is done. temporary: step-N.tmp-X, or a temporary file of `latest`.
enum class EntryKind { published, replaced, temporary, other };
EntryKind KindOf(const std::string& name);

// Names of this kind in the directory, ascending; none when it is not there.
std::vector<std::string> EntriesOfKind(const std::string& directory, EntryKind kind, FileSystem& files);

}  // namespace penstock::checkpoint
