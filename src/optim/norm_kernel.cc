// src/optim/norm_kernel.cc
//
// Block sums of optim/norm.h. Four lanes of fp64 are one vector; four blocks advance together, because one block
// alone waits for the latency of its additions.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "optim/norm.h"

// 32-byte vectors never cross a function boundary that is not inlined; the note about their ABI is noise.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace penstock::optim {
namespace {

typedef double Lanes __attribute__((vector_size(32)));

Lanes Load(const float* p) {
  typedef float Four __attribute__((vector_size(16)));
  Four x;
  std::memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Lanes);
}
Lanes Load(const double* p) {
  Lanes x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

double AddLanes(Lanes x) { return (x[0] + x[1]) + (x[2] + x[3]); }

template <typename T>
double SquaresOfOne(const T* data, int64_t n) {
  Lanes sum{};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const Lanes x = Load(data + i);
    sum += x * x;
  }
  for (; i < n; ++i) {
    const auto x = static_cast<double>(data[i]);
    sum[i % 4] += x * x;
  }
  return AddLanes(sum);
}

template <typename T>
void SquaresOfFour(const T* data, double* out) {
  Lanes a{}, b{}, c{}, d{};
  for (int64_t i = 0; i < kNormBlock; i += 4) {
    const Lanes xa = Load(data + i);
    const Lanes xb = Load(data + i + kNormBlock);
    const Lanes xc = Load(data + i + 2 * kNormBlock);
    const Lanes xd = Load(data + i + 3 * kNormBlock);
    a += xa * xa;
    b += xb * xb;
    c += xc * xc;
    d += xd * xd;
  }
  out[0] = AddLanes(a);
  out[1] = AddLanes(b);
  out[2] = AddLanes(c);
  out[3] = AddLanes(d);
}

// The largest magnitude, NaN when there is one. A maximum has the same bits in any order, so the lanes are free here.
template <typename T>
double Largest(const T* data, int64_t n) {
  T largest[16] = {};
  bool nan = false;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int k = 0; k < 16; ++k) {
      const T x = std::abs(data[i + k]);
      largest[k] = x > largest[k] ? x : largest[k];
      nan |= x != x;
    }
  }
  for (; i < n; ++i) {
    const T x = std::abs(data[i]);
    largest[0] = x > largest[0] ? x : largest[0];
    nan |= x != x;
  }
  if (nan) return std::nan("");
  return static_cast<double>(*std::max_element(largest, largest + 16));
}

// Only blocks whose result is not finite can hold such elements: a second look at those costs nothing in a healthy run.
template <typename T>
int64_t CountNonFinite(const T* data, int64_t n, const double* sums) {
  int64_t count = 0;
  for (int64_t block = 0; block < NumNormBlocks(n); ++block) {
    if (std::isfinite(sums[block])) continue;
    for (int64_t i = block * kNormBlock; i < std::min(n, (block + 1) * kNormBlock); ++i)
      count += std::isfinite(data[i]) ? 0 : 1;
  }
  return count;
}

template <typename T>
int64_t Blocks(const T* data, int64_t n, NormKind kind, double* out) {
  int64_t block = 0;
  if (kind == NormKind::l2) {
    for (; (block + 4) * kNormBlock <= n; block += 4) SquaresOfFour(data + block * kNormBlock, out + block);
    for (; block * kNormBlock < n; ++block)
      out[block] = SquaresOfOne(data + block * kNormBlock, std::min(kNormBlock, n - block * kNormBlock));
  } else {
    for (; block * kNormBlock < n; ++block)
      out[block] = Largest(data + block * kNormBlock, std::min(kNormBlock, n - block * kNormBlock));
  }
  return CountNonFinite(data, n, out);
}

}  // namespace

int64_t BlockSums(const float* data, int64_t n, NormKind kind, double* out) { return Blocks(data, n, kind, out); }
int64_t BlockSums(const double* data, int64_t n, NormKind kind, double* out) { return Blocks(data, n, kind, out); }

}  // namespace penstock::optim
