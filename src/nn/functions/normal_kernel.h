// Keyed normal values: element i of a name is a function of (key, name, i) alone. Box and Muller (1958) in fp64,
// rounded to fp32. No libtorch here.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace penstock::nn {

// Elements [begin, begin + n) of the stream, times std.
void FillNormal(PhiloxKey key, uint64_t name_hash, double std, int64_t begin, float* out, int64_t n);

}  // namespace penstock::nn
