// src/data/token_stream.h
//
// A long sequence of token ids, stored in as few bytes each as the vocabulary needs (1, 2 or 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace penstock::data {

class TokenStream {
 public:
  explicit TokenStream(int32_t vocabulary)
      : vocabulary_(vocabulary),
        width_(vocabulary <= 1 << 8    ? 1
               : vocabulary <= 1 << 16 ? 2
                                       : 4) {}

  int64_t size() const { return static_cast<int64_t>(bytes_.size() / width_); }
  int32_t vocabulary() const { return vocabulary_; }

  int32_t operator[](int64_t i) const {
    const unsigned char* at = bytes_.data() + static_cast<size_t>(i) * width_;
    uint32_t id = 0;
    for (size_t b = 0; b < width_; ++b) id |= uint32_t{at[b]} << (8 * b);
    return static_cast<int32_t>(id);
  }
  void Append(int32_t id) {
    PENSTOCK_CHECK(id >= 0 && id < vocabulary_, "token id {} outside [0, {})", id, vocabulary_);
    for (size_t b = 0; b < width_; ++b)
      bytes_.push_back(static_cast<unsigned char>(static_cast<uint32_t>(id) >> (8 * b)));
  }
  void Append(std::span<const int32_t> ids) {
    for (const int32_t id : ids) Append(id);
  }
  Hash128 Fingerprint() const { return Hash(bytes_.data(), bytes_.size()); }

 private:
  int32_t vocabulary_;
  size_t width_;
  std::vector<unsigned char> bytes_;
};

}  // namespace penstock::data
