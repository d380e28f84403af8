// src/optim/unscale.h
//
// Takes the loss scale (base/loss_scale.h) out of a gradient.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::optim {

// Divides by `scale`, a power of two, so exactly unless the result is below the smallest normal number. fp32 and fp64.
// In place where nobody else sees the memory, else in a copy. Returns whether all elements are finite.
bool Unscale(at::Tensor& gradient, double scale);

}  // namespace penstock::optim
