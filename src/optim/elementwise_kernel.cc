#include "optim/elementwise_kernel.h"

#include <cmath>
#include <limits>

namespace penstock::optim {
namespace {

template <typename T>
void Add(T* __restrict__ left, const T* __restrict__ right, int64_t n) {
  for (int64_t i = 0; i < n; ++i) left[i] += right[i];
}

template <typename T>
bool Scale(T* x, T factor, int64_t n) {
  int bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    x[i] *= factor;
    bad |= std::abs(x[i]) <= std::numeric_limits<T>::max() ? 0 : 1;  // a comparison with NaN is false
  }
  return bad == 0;
}

template <typename T>
void AdamW(const AdamWScalars<T> s, T* __restrict__ p, const T* __restrict__ g, T* __restrict__ m, T* __restrict__ v,
           int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = g[i] * s.scale;
    const T first = m[i] + (gradient - m[i]) * s.one_minus_beta1;
    const T second = v[i] * s.beta2 + (gradient * gradient) * s.one_minus_beta2;
    m[i] = first;
    v[i] = second;
    p[i] = p[i] * s.keep - (s.step * first) / (std::sqrt(second) / s.root + s.eps);
  }
}

template <typename T, bool kNesterov>
void Momentum(const SgdScalars<T> s, T* __restrict__ p, const T* __restrict__ g, T* __restrict__ buffer, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = g[i] * s.scale + p[i] * s.decay;
    const T b = buffer[i] * s.momentum + gradient;
    buffer[i] = b;
    p[i] = p[i] - s.lr * (kNesterov ? gradient + s.momentum * b : b);
  }
}

template <typename T>
void Plain(const SgdScalars<T> s, T* __restrict__ p, const T* __restrict__ g, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = p[i] - s.lr * (g[i] * s.scale + p[i] * s.decay);
}

template <typename T>
void Sgd(const SgdScalars<T>& s, T* p, const T* g, T* buffer, int64_t n) {
  if (buffer == nullptr) {
    Plain(s, p, g, n);
  } else if (s.nesterov) {
    Momentum<T, true>(s, p, g, buffer, n);
  } else {
    Momentum<T, false>(s, p, g, buffer, n);
  }
}

}  // namespace

void AddInto(float* left, const float* right, int64_t n) { Add(left, right, n); }
void AddInto(double* left, const double* right, int64_t n) { Add(left, right, n); }

bool ScaleInto(float* x, float factor, int64_t n) { return Scale(x, factor, n); }
bool ScaleInto(double* x, double factor, int64_t n) { return Scale(x, factor, n); }

void AdamWStep(const AdamWScalars<float>& s, float* p, const float* g, float* m, float* v, int64_t n) {
  AdamW(s, p, g, m, v, n);
}
void AdamWStep(const AdamWScalars<double>& s, double* p, const double* g, double* m, double* v, int64_t n) {
  AdamW(s, p, g, m, v, n);
}

void SgdStep(const SgdScalars<float>& s, float* p, const float* g, float* buffer, int64_t n) {
  Sgd(s, p, g, buffer, n);
}
void SgdStep(const SgdScalars<double>& s, double* p, const double* g, double* buffer, int64_t n) {
  Sgd(s, p, g, buffer, n);
}

}  // namespace penstock::optim
