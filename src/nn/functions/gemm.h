// Operands of matrix products in the precision of the run.
//
// bf16, fp16: both operands are rounded and the product is a single-precision GEMM of the rounded values: exact
// products, fp32 accumulation, fp32 result. A bf16 GEMM of libtorch would round its result once more, and on CPUs
// without bf16 instructions it is 4 to 130 times slower (docs/decisions.md).
#pragma once

#include <ATen/core/Tensor.h>

#include "model/precision.h"

namespace penstock::nn {

// What is kept of a GEMM operand between forward and backward: rounded in bf16 and fp16 mode, else the tensor itself.
at::Tensor Operand(const at::Tensor& t, model::Precision precision);

// A kept operand as GEMM input: fp32 when it is rounded, else the tensor itself.
at::Tensor Widened(const at::Tensor& operand);

// Widened(Operand(t)).
at::Tensor Rounded(const at::Tensor& t, model::Precision precision);

// [.., n] -> [rows, n], contiguous.
at::Tensor Rows(const at::Tensor& t);

}  // namespace penstock::nn
