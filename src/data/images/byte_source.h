// src/data/images/byte_source.h
//
// The bytes of a file from its start, in blocks; those of a gzip file decompressed (it is known by its first two bytes,
// not by its name). One thread at a time.
//
// Errors: UserError when a gzip file is damaged, cut off, or has something else behind its end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::data::images {

class ByteSource {
 public:
  explicit ByteSource(const std::string& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills `out`; the number of bytes is smaller only where the file ends.
  size_t Read(std::span<uint8_t> out);
  // Appends `bytes` to `out`, growing it as they come in; the number of bytes as Read. So a header that promises more
  // than the file has costs no memory.
  int64_t Append(int64_t bytes, std::vector<uint8_t>* out);
  bool AtEnd();
  const std::string& path() const { return path_; }

 private:
  struct State;
  size_t ReadPlain(std::span<uint8_t> out);
  size_t ReadGzip(std::span<uint8_t> out);
  bool Fill();

  std::string path_;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::data::images
