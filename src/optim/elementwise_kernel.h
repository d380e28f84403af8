// src/optim/elementwise_kernel.h
//
// Loops over raw pointers that the compiler vectorises (*_kernel.cc files are built with -O3 -march=native and
// -ffp-contract=off). Every element is computed by the same IEEE operations whether it falls in the vector body or
// in the tail, so results do not depend on how a tensor is cut. Arrays do not overlap unless said otherwise.
#pragma once

#include <cstdint>

namespace penstock::optim {

// left[i] += right[i].
void AddInto(float* left, const float* right, int64_t n);
void AddInto(double* left, const double* right, int64_t n);

// x[i] *= factor; whether all of them are finite then.
bool ScaleInto(float* x, float factor, int64_t n);
bool ScaleInto(double* x, double factor, int64_t n);

// Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR'19, algorithm 2:
//   g' = scale g;  p = p keep;  m = m + (g' - m) (1 - beta1);  v = v beta2 + (1 - beta2) g' g'
//   p = p - step m / (sqrt(v) / root + eps)
// keep = 1 - lr wd, step = lr / (1 - beta1^t), root = sqrt(1 - beta2^t), all computed in fp64 and rounded once.
template <typename T>
struct AdamWScalars {
  T scale, keep, one_minus_beta1, beta2, one_minus_beta2, step, root, eps;
};
void AdamWStep(const AdamWScalars<float>& s, float* p, const float* g, float* m, float* v, int64_t n);
void AdamWStep(const AdamWScalars<double>& s, double* p, const double* g, double* m, double* v, int64_t n);

// Momentum as libtorch defines it (Sutskever et al., ICML'13, with the learning rate outside the buffer):
//   g' = scale g + decay p;  b = momentum b + g' (b is zero before the first update)
//   p = p - lr (nesterov ? g' + momentum b : b)
template <typename T>
struct SgdScalars {
  T scale, decay, momentum, lr;
  bool nesterov;
};
// `buffer` is null when there is no momentum.
void SgdStep(const SgdScalars<float>& s, float* p, const float* g, float* buffer, int64_t n);
void SgdStep(const SgdScalars<double>& s, double* p, const double* g, double* buffer, int64_t n);

}  // namespace penstock::optim
