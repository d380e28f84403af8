// Activations. Gelu keeps its input; Swiglu (Shazeer 2020) keeps gate, silu(gate) and up.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn {

// Tanh form. fp32 or fp64.
at::Tensor Gelu(const at::Tensor& x);

// silu(gate) * up
at::Tensor Swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace penstock::nn
