// src/data/order.h
//
// The order of samples by index arithmetic (docs/numerics.md R8): position -> sample in O(1) time and memory, so any
// rank of any layout, and a run resumed at any step, see the same samples without keeping a list.
// Part of the reproducibility specification: a golden test holds it; do not change.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace penstock::data {

// A bijection of [0, n): a balanced Feistel network (8 rounds, round function Philox with key (seed, "data") and
// counter (half, round, epoch)) over the smallest 2^(2h) >= n, walked until it lands inside [0, n) (fewer than four
// steps on average; Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). Any thread.
class KeyedPermutation {
 public:
  // n >= 1.
  KeyedPermutation(int64_t n, uint64_t seed, int64_t epoch);
  int64_t operator()(int64_t index) const;
  int64_t size() const { return static_cast<int64_t>(n_); }

 private:
  uint64_t n_;
  int half_bits_;
  uint64_t epoch_;
  PhiloxKey key_;
};

}  // namespace penstock::data
