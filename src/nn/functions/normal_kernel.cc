#include "nn/functions/normal_kernel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace penstock::nn {
namespace {

struct Four {
  float value[4];
};

// Two pairs from one Philox block; uniforms are the midpoints of 2^32 cells, so that the logarithm is finite.
Four Normals(PhiloxKey key, uint64_t name_hash, uint64_t block, double std) {
  const PhiloxCounter words = Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                                      static_cast<uint32_t>(name_hash), static_cast<uint32_t>(name_hash >> 32)},
                                     key);
  Four result;
  for (int pair = 0; pair < 2; ++pair) {
    const double u = (static_cast<double>(words[2 * pair]) + 0.5) * 0x1p-32;
    const double angle = (static_cast<double>(words[2 * pair + 1]) + 0.5) * 0x1p-32 * 2.0 * std::numbers::pi;
    const double radius = std * std::sqrt(-2.0 * std::log(u));
    result.value[2 * pair] = static_cast<float>(radius * std::cos(angle));
    result.value[2 * pair + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return result;
}

}  // namespace

void FillNormal(PhiloxKey key, uint64_t name_hash, double std, int64_t begin, float* out, int64_t n) {
  for (int64_t i = 0; i < n;) {
    const int64_t element = begin + i, lane = element % 4;
    const Four four = Normals(key, name_hash, static_cast<uint64_t>(element / 4), std);
    const int64_t count = std::min(4 - lane, n - i);
    std::copy_n(four.value + lane, count, out + i);
    i += count;
  }
}

}  // namespace penstock::nn
