// Normalisation over the last extent.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn {

// Ba et al. 2016. Keeps x, mean and 1/std of each row.
at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);

// Zhang and Sennrich 2019: x / sqrt(mean(x^2) + eps) * weight. Keeps x and 1/rms of each row.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace penstock::nn
