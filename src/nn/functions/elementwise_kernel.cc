#include "nn/functions/elementwise_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace penstock::nn {
namespace {

constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;

// exp by x = n ln 2 + r, |r| <= ln 2 / 2, and the Taylor polynomial of degree 7 (r^8 / 8! < 6e-9). ln 2 is split so
// that n times its upper part is exact. Not-a-number passes the clamps and comes out.
inline float Exp(float x) {
  x = x > 88.0f ? 88.0f : x;
  x = x < -87.0f ? -87.0f : x;
  const float n = std::rint(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

inline double Exp(double x) { return std::exp(x); }

template <typename T>
void GeluForwardLoop(const T* x, T* y, int64_t n) {
  constexpr T c = static_cast<T>(-2 * kSqrtTwoOverPi), cubic = static_cast<T>(kCubic);
  for (int64_t i = 0; i < n; ++i) {
    const T v = x[i];
    y[i] = v / (T{1} + Exp(c * (v + cubic * v * v * v)));
  }
}

template <typename T>
void GeluBackwardLoop(const T* grad_y, const T* x, T* grad_x, int64_t n) {
  constexpr T c = static_cast<T>(-2 * kSqrtTwoOverPi), cubic = static_cast<T>(kCubic);
  for (int64_t i = 0; i < n; ++i) {
    const T v = x[i];
    const T s = T{1} / (T{1} + Exp(c * (v + cubic * v * v * v)));
    const T slope = -c * (T{1} + 3 * cubic * v * v);
    grad_x[i] = grad_y[i] * (s + v * slope * s * (T{1} - s));
  }
}

template <typename T>
void DropoutLoop(const DropoutStream& stream, int64_t begin, const T* x, T* y, int64_t n) {
  const T scale = static_cast<T>(stream.scale);
  for (int64_t i = 0; i < n; i += 4) {
    const auto block = static_cast<uint32_t>((begin + i) / 4);
    const PhiloxCounter words = Philox({block, stream.sample, stream.site, stream.step}, stream.key);
    const int64_t end = std::min<int64_t>(4, n - i);
    for (int64_t k = 0; k < end; ++k) y[i + k] = words[k] >= stream.threshold ? x[i + k] * scale : T{0};
  }
}

}  // namespace

void GeluForward(const float* x, float* y, int64_t n) { GeluForwardLoop(x, y, n); }
void GeluForward(const double* x, double* y, int64_t n) { GeluForwardLoop(x, y, n); }
void GeluBackward(const float* g, const float* x, float* grad_x, int64_t n) { GeluBackwardLoop(g, x, grad_x, n); }
void GeluBackward(const double* g, const double* x, double* grad_x, int64_t n) { GeluBackwardLoop(g, x, grad_x, n); }

void Dropout(const DropoutStream& stream, int64_t begin, const float* x, float* y, int64_t n) {
  DropoutLoop(stream, begin, x, y, n);
}
void Dropout(const DropoutStream& stream, int64_t begin, const double* x, double* y, int64_t n) {
  DropoutLoop(stream, begin, x, y, n);
}

}  // namespace penstock::nn
