// src/comm/add_kernel.h
//
// out[i] = a[i] + b[i]; out may be a or b. IEEE additions for float and double, wrap-around for integers (a count that
// overflows must not be undefined behaviour).
#pragma once

#include <cstdint>

namespace penstock::comm {

void AddArrays(float* out, const float* a, const float* b, int64_t n);
void AddArrays(double* out, const double* a, const double* b, int64_t n);
void AddArrays(int32_t* out, const int32_t* a, const int32_t* b, int64_t n);
void AddArrays(int64_t* out, const int64_t* a, const int64_t* b, int64_t n);

}  // namespace penstock::comm
