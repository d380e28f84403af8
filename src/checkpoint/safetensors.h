// src/checkpoint/safetensors.h
//
// Reader and writer of the safetensors format: a header (checkpoint/safetensors_header.h), then the tensors without
// gaps, row-major and little-endian.
//
// Errors: UserError for files that break a rule of the format, before anything they describe is allocated;
// WorldError when the disk fails. Threads: a reader may be used by any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "checkpoint/safetensors_header.h"
#include "checkpoint/tensor_source.h"

namespace penstock::checkpoint {

class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path, FileSystem& files = FileSystem::Real());

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  bool Has(std::string_view name) const { return index_.find(name) != index_.end(); }
  // UserError with the nearest names when there is none.
  const SafetensorsEntry& Find(std::string_view name) const;
  at::Tensor Read(std::string_view name) const;
  // Elements [first, first + count) of the flattened tensor, for a rank that owns a shard.
  at::Tensor ReadElements(std::string_view name, int64_t first, int64_t count) const;
  // Bytes [offset, offset + out.size()) of the tensor.
  void ReadBytes(const SafetensorsEntry& entry, uint64_t offset, std::span<char> out) const;

 private:
  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  SafetensorsHeader header_;
  std::map<std::string, size_t, std::less<>> index_;
};

// Writes `source` to a new file `path`, one tensor in memory at a time, and syncs it. Not atomic by itself (a
// checkpoint publishes a whole directory). Returns the hash of every tensor (checkpoint/tensor_hash.h). InternalError
// when the source delivers another dtype or shape than it announced.
std::map<std::string, std::string> WriteSafetensors(const std::string& path, const TensorSource& source,
                                                    const std::map<std::string, std::string>& metadata = {},
                                                    FileSystem& files = FileSystem::Real());

}  // namespace penstock::checkpoint
