// src/checkpoint/safetensors.h
//
// Reader and writer of the safetensors format: 8 bytes little-endian header length N, N bytes of a JSON object
// {"__metadata__": {text: text}, name: {"dtype": .., "shape": [..], "data_offsets": [begin, end]}, ..}, then the data;
// offsets count from the end of the header. Row-major, little-endian.
//
// The reader trusts nothing: before any allocation that depends on the file it checks header length, JSON, keys
// (duplicates at any depth), dtype, shape times size against the offsets, and that the tensors fill the data without
// gap, overlap or rest. Errors are UserError and name file, tensor and rule.
// Threads: one thread at a time per object.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "checkpoint/tensor_source.h"

namespace penstock::checkpoint {

// Larger headers are refused, as the reference implementation does.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  TensorSpec spec;
  uint64_t begin = 0;  // bytes, from the start of the data
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by offset
  std::map<std::string, std::string> metadata;
  uint64_t data_start = 0;  // bytes from the start of the file
  uint64_t data_bytes = 0;
};

// "F32" and so on for F64 F32 BF16 F16 I64 I32 U8; UserError for another type.
std::string SafetensorsDtype(at::ScalarType dtype);

// Length of the header from the first bytes of a file of `file_bytes` bytes (`prefix`: the first 8, or fewer when
// the file is shorter). UserError with `file` in the message when it cannot be one.
uint64_t CheckSafetensorsPrefix(std::string_view prefix, uint64_t file_bytes, const std::string& file);
// Parses and validates a header; `json` has the length that the prefix gave.
SafetensorsHeader ParseSafetensorsHeader(std::string_view json, uint64_t file_bytes, const std::string& file);

// Length prefix and JSON for these tensors in this order, padded with spaces so that the data starts on a multiple of
// 8 bytes. Entries get their offsets.
std::string FormatSafetensorsHeader(const std::vector<TensorSpec>& specs,
                                    const std::map<std::string, std::string>& metadata);

class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path);
  ~SafetensorsReader();

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  bool Has(std::string_view name) const;
  // UserError with the nearest names when there is none.
  const SafetensorsEntry& Find(std::string_view name) const;
  at::Tensor Read(std::string_view name) const;
  // Elements [first, first + count) of the flattened tensor: a rank that owns a shard reads only that.
  at::Tensor ReadElements(std::string_view name, int64_t first, int64_t count) const;
  // Bytes [offset, offset + out.size()) of the tensor.
  void ReadBytes(const SafetensorsEntry& entry, uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  std::unique_ptr<RandomAccessFile> file_;
  SafetensorsHeader header_;
  std::map<std::string, size_t, std::less<>> index_;
};

// Writes `source` to a new file `path`, one tensor in memory at a time, and syncs it. Not atomic by itself (the
// checkpoint publishes a whole directory). Returns the hash of every tensor (checkpoint/tensor_hash.h).
std::map<std::string, std::string> WriteSafetensors(const std::string& path, const TensorSource& source,
                                                    const std::map<std::string, std::string>& metadata = {});

}  // namespace penstock::checkpoint
