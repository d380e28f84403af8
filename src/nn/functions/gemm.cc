#include "nn/functions/gemm.h"

#include <torch/types.h>

namespace penstock::nn {

at::Tensor Operand(const at::Tensor& t, model::Precision precision) {
  switch (precision) {
    case model::Precision::bf16:
      return t.to(at::kBFloat16);
    case model::Precision::fp16:
      return t.to(at::kHalf);
    default:
      return t;
  }
}

at::Tensor Widened(const at::Tensor& operand) {
  const bool narrow = operand.scalar_type() == at::kBFloat16 || operand.scalar_type() == at::kHalf;
  return narrow ? operand.to(at::kFloat) : operand;
}

at::Tensor Rounded(const at::Tensor& t, model::Precision precision) { return Widened(Operand(t, precision)); }

at::Tensor Rows(const at::Tensor& t) {
  return t.contiguous().view({t.numel() / std::max<int64_t>(1, t.size(-1)), t.size(-1)});
}

}  // namespace penstock::nn
