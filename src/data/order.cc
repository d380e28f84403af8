#include "data/order.h"

#include <bit>

#include "base/error.h"

namespace penstock::data {

KeyedPermutation::KeyedPermutation(int64_t n, uint64_t seed, int64_t epoch)
    : n_(static_cast<uint64_t>(n)), epoch_(static_cast<uint64_t>(epoch)), key_(MakePhiloxKey(seed, "data")) {
  PENSTOCK_CHECK(n >= 1 && epoch >= 0, "permutation of {} in epoch {}", n, epoch);
  half_bits_ = (std::bit_width(n_ - 1) + 1) / 2;
}

int64_t KeyedPermutation::operator()(int64_t index) const {
  PENSTOCK_CHECK(index >= 0 && static_cast<uint64_t>(index) < n_, "index {} of {}", index, n_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto x = static_cast<uint64_t>(index);
  do {
    uint64_t left = x >> half_bits_;
    uint64_t right = x & mask;
    for (uint32_t round = 0; round < 8; ++round) {
      const PhiloxCounter random = Philox(
          {static_cast<uint32_t>(right), round, static_cast<uint32_t>(epoch_), static_cast<uint32_t>(epoch_ >> 32)},
          key_);
      const uint64_t mixed = left ^ (random[0] & mask);
      left = right;
      right = mixed;
    }
    x = left << half_bits_ | right;
  } while (x >= n_);
  return static_cast<int64_t>(x);
}

}  // namespace penstock::data
