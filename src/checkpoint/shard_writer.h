// src/checkpoint/shard_writer.h
//
// One writer's part of a checkpoint: a safetensors file of pieces, model and optimizer together. Every rank has one, so
// that no rank holds or writes the whole state.
//
//   ShardWriter writer(files, folder, shard, shards, pieces);   // writes the header
//   for (i = 0, 1, ...) writer.Append(tensor of piece i);       // any thread, one at a time
//   ShardRecord record = writer.Finish();                       // on stable storage
//
// Memory: none of its own beside the header. Errors: WorldError when the disk fails; InternalError when a tensor is not
// what its piece says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "checkpoint/manifest.h"

namespace penstock::checkpoint {

// Elements [begin, end) of the flattened `tensor`.
struct Piece {
  enum class Of : uint8_t { model, optimizer };
  Of of = Of::model;
  TensorSpec tensor{};
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes() const;
};

// What the manifest says of a written shard.
struct ShardRecord {
  StoredFile file{};
  std::vector<Piece> pieces{};
  std::vector<std::string> hashes{};  // of the pieces
};
// As text, to be sent to the rank that publishes. ParseShardRecord throws InternalError for anything else.
std::string FormatShardRecord(const ShardRecord& record);
ShardRecord ParseShardRecord(std::string_view text);

class ShardWriter {
 public:
  ShardWriter(FileSystem& files, const std::string& folder, int shard, int shards, std::vector<Piece> pieces);

  // The next piece: a CPU tensor of its type with (end - begin) elements, in any shape.
  void Append(const at::Tensor& tensor);
  ShardRecord Finish();

 private:
  ShardRecord record_;
  std::unique_ptr<WritableFile> file_;
};

}  // namespace penstock::checkpoint
