// src/checkpoint/publish.h
//
// A save in three steps, so that many writers can take part:
//
//   PendingCheckpoint pending = BeginCheckpoint(directory, step, files);    // one rank; the others are told the folder
//   ShardRecord record = ShardWriter(files, pending.folder, ...)...;        // every writer, at any time
//   std::string path = PublishCheckpoint(pending, state, records, options); // the first rank, when all are done
//
// Until it is published nothing but the folder `step-N.tmp-X` is there; the next save of the directory removes what a
// killed one left. One save at a time in a directory.
// Errors: WorldError when the disk fails: the checkpoints that were there are still valid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard_writer.h"

namespace penstock::checkpoint {

struct SaveOptions {
  int64_t keep_last = 0;   // 0: keep all; k: the k checkpoints saved last
  int64_t keep_every = 0;  // beside these, those whose step is a multiple of it; 0: none
  // Saves (Manifest::sequence) that are known to be damaged: keep_last neither counts nor removes them.
  std::vector<int64_t> damaged{};
  FileSystem& files = FileSystem::Real();
};

struct PendingCheckpoint {
  std::string directory{};
  int64_t step = 0;
  std::string folder{};  // where the shards are written
};

PendingCheckpoint BeginCheckpoint(const std::string& directory, int64_t step, FileSystem& files = FileSystem::Real());
// The path of the new checkpoint. A checkpoint of the same step is replaced; what options.keep_last lets go is removed.
std::string PublishCheckpoint(const PendingCheckpoint& pending, const TrainState& state,
                              const std::vector<ShardRecord>& shards, const SaveOptions& options);
// Removes what was written, for all ranks; never throws.
void AbandonCheckpoint(const PendingCheckpoint& pending, FileSystem& files = FileSystem::Real());

// The same for whatever unfinished save is in the directory, when its run is over.
void RemoveUnfinished(const std::string& directory, FileSystem& files = FileSystem::Real());

}  // namespace penstock::checkpoint
