// src/memory/cpu/size_class.h
//
// Size classes of the block cache: sixteen per power of two, from 64 KB on.
#pragma once

#include <bit>
#include <cstddef>

namespace penstock::memory {

inline constexpr size_t kSmallestCached = 64 << 10;
inline constexpr int kSmallestLog2 = 16;
inline constexpr int kStepsLog2 = 4;
inline constexpr int kNumSizeClasses = (48 - kSmallestLog2) << kStepsLog2;  // up to 2^48 bytes

// Index of the smallest class that holds `bytes` (>= kSmallestCached).
inline int SizeClassOf(size_t bytes) {
  const int log2 = std::bit_width(bytes) - 1;
  const int shift = log2 - kStepsLog2;
  const size_t steps = (bytes + (size_t{1} << shift) - 1) >> shift;  // 16 .. 32 units of 2^shift
  return ((log2 - kSmallestLog2) << kStepsLog2) + static_cast<int>(steps - (size_t{1} << kStepsLog2));
}

inline size_t SizeOfClass(int index) {
  const int log2 = kSmallestLog2 + (index >> kStepsLog2);
  const size_t steps = (size_t{1} << kStepsLog2) + (index & ((1 << kStepsLog2) - 1));
  return steps << (log2 - kStepsLog2);
}

}  // namespace penstock::memory
