// src/checkpoint/safetensors_header.h
//
// The header of a safetensors file: 8 bytes little-endian length N, then N bytes of a JSON object
// {"__metadata__": {text: text}, name: {"dtype": .., "shape": [..], "data_offsets": [begin, end]}, ..}. Offsets count
// from the end of the header.
//
// The parser trusts nothing: header length, JSON, keys (duplicates at any depth, unknown fields), dtype, shape times
// size against the offsets, and that the tensors fill the data without gap, overlap or rest are checked before
// anything of a size that the file names is allocated. Errors are UserError and name file, tensor and rule.
// Stateless; any thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace penstock::checkpoint {

// Larger headers are refused, as the reference implementation does.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;
inline constexpr size_t kMaxSafetensorsDimensions = 64;

struct SafetensorsEntry {
  TensorSpec spec{};
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
// The other way round; UserError for a text that is none of these.
at::ScalarType ParseSafetensorsDtype(std::string_view text);

// Length of the header from the first bytes of a file of `file_bytes` bytes (`prefix`: the first 8, or all when the
// file is shorter).
uint64_t CheckSafetensorsPrefix(std::string_view prefix, uint64_t file_bytes, const std::string& file);
// Parses and validates a header; `json` has the length that the prefix gave.
SafetensorsHeader ParseSafetensorsHeader(std::string_view json, uint64_t file_bytes, const std::string& file);

// Length prefix and JSON for these tensors in this order, padded with spaces so that the data starts on a multiple of
// 8 bytes. UserError for a name or metadata that is not UTF-8.
std::string FormatSafetensorsHeader(const std::vector<TensorSpec>& specs,
                                    const std::map<std::string, std::string>& metadata);

}  // namespace penstock::checkpoint
