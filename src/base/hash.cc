#include "base/hash.h"

#include <xxhash.h>

#include <array>

#include "base/error.h"

namespace penstock {

struct Hasher::State {
  State() : state(XXH3_createState()) {
    PENSTOCK_CHECK(state != nullptr);
    XXH3_128bits_reset(state);
  }
  ~State() { XXH3_freeState(state); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  XXH3_state_t* state;  // aligned to 64 bytes by the library, so it is not a plain member
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::Update(const void* bytes, size_t size) {
  if (size > 0) XXH3_128bits_update(state_->state, bytes, size);
  return *this;
}

Hasher& Hasher::Update(uint64_t number) {
  std::array<unsigned char, 8> bytes;
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(number >> (8 * i));
  return Update(bytes.data(), bytes.size());
}

Hash128 Hasher::Digest() const {
  const XXH128_hash_t h = XXH3_128bits_digest(state_->state);
  return {h.high64, h.low64};
}

Hash128 Hash(const void* bytes, size_t size) {
  const XXH128_hash_t h = XXH3_128bits(size > 0 ? bytes : "", size);
  return {h.high64, h.low64};
}

std::string Hash128::Hex() const { return fmt::format("{:016x}{:016x}", high, low); }

}  // namespace penstock
