// Element-wise loops over raw memory. The result of an element depends on that element's inputs only: neither on its
// place in the array nor on the number of threads. No libtorch here.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace penstock::nn {

// GELU, tanh form: y = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3). libtorch's takes 2 to 5 times as
// long on AVX2 (docs/decisions.md).
void GeluForward(const float* x, float* y, int64_t n);
void GeluForward(const double* x, double* y, int64_t n);
// grad_x = grad_y dy/dx
void GeluBackward(const float* grad_y, const float* x, float* grad_x, int64_t n);
void GeluBackward(const double* grad_y, const double* x, double* grad_x, int64_t n);

// Keyed dropout of one sample: element i (from `begin`, a multiple of 4) survives, scaled, where the Philox word of
// counter (i / 4, sample, site, step) is at least `threshold`; else 0.
struct DropoutStream {
  PhiloxKey key;
  uint32_t sample;
  uint32_t site;
  uint32_t step;
  uint32_t threshold;  // probability of dropping, times 2^32
  double scale;        // 1 / (1 - probability)
};
void Dropout(const DropoutStream& stream, int64_t begin, const float* x, float* y, int64_t n);
void Dropout(const DropoutStream& stream, int64_t begin, const double* x, double* y, int64_t n);

}  // namespace penstock::nn
