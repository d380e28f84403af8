#include "comm/add_kernel.h"

namespace penstock::comm {

void AddArrays(float* out, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void AddArrays(double* out, const double* a, const double* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void AddArrays(int32_t* out, const int32_t* a, const int32_t* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<int32_t>(static_cast<uint32_t>(a[i]) + static_cast<uint32_t>(b[i]));
}

void AddArrays(int64_t* out, const int64_t* a, const int64_t* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<int64_t>(static_cast<uint64_t>(a[i]) + static_cast<uint64_t>(b[i]));
}

}  // namespace penstock::comm
