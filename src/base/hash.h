// src/base/hash.h
//
// XXH3, 128 bits, of bytes: fingerprints of files, tensors and corpora. Not cryptographic. The same on every machine
// (the canonical big-endian form is printed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace penstock {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  // 32 hexadecimal digits.
  std::string Hex() const;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

Hash128 Hash(const void* bytes, size_t size);
inline Hash128 Hash(std::string_view bytes) { return Hash(bytes.data(), bytes.size()); }

// Hash of a concatenation: Update(a), Update(b) gives Hash(a + b). One thread at a time.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& Update(const void* bytes, size_t size);
  Hasher& Update(std::string_view bytes) { return Update(bytes.data(), bytes.size()); }
  // The eight bytes of `number`, least significant first.
  Hasher& Update(uint64_t number);
  Hash128 Digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
