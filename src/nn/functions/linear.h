// y = x W^T + b with a backward whose weight half can be set aside (nn/deferred.h).
//   x [.., in], W [out, in], b [out] or undefined -> y [.., out]. Keeps the operand of x; W is kept as the leaf.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/precision.h"

namespace penstock::nn {

// An input and its kept operand. Linears that read the same input share one, so that it is rounded and kept once.
struct LinearInput {
  at::Tensor x;        // carries the graph
  at::Tensor operand;  // [rows, in], no graph
};
LinearInput MakeLinearInput(const at::Tensor& x, model::Precision precision);

at::Tensor Linear(const LinearInput& input, const at::Tensor& weight, const at::Tensor& bias,
                  model::Precision precision);
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, model::Precision precision);

struct LinearGrads {
  at::Tensor weight;
  at::Tensor bias;  // undefined unless asked for
};

// The weight half: dY^T x and the sum of the rows of dY. The only place that computes it, now or later.
// grad_output [rows, out], contiguous; x is the kept operand [rows, in].
LinearGrads LinearWeightHalf(const at::Tensor& grad_output, const at::Tensor& x, bool want_bias,
                             model::Precision precision);

}  // namespace penstock::nn
