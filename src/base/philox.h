// src/base/philox.h
//
// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11.
// A value depends on (key, counter) alone: initial weights, dropout masks and data order do not depend on the layout
// of a run (docs/numerics.md R8). Stateless; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline PhiloxCounter Philox(PhiloxCounter c, PhiloxKey k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

// FNV-1a, 64 bit; the hash of names in keys and counters. Part of the reproducibility specification: do not change.
constexpr uint64_t HashName(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return h;
}

// The key of a named stream of a run: (seed, "init"), (seed, "dropout"), (seed, "data").
constexpr PhiloxKey MakePhiloxKey(uint64_t seed, std::string_view stream) {
  uint64_t x = seed ^ HashName(stream);  // splitmix64 finaliser: neighbouring seeds give unrelated keys
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  x ^= x >> 31;
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
}

// Uniform in (0, 1], 24 bits.
inline float PhiloxUniform(uint32_t word) { return (static_cast<float>(word >> 8) + 1.0f) * 0x1p-24f; }

}  // namespace penstock
