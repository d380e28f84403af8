#include "nn/functions/attention.h"

#include <torch/types.h>

#include <cmath>
#include <limits>

#include "nn/functions/dropout.h"

namespace penstock::nn {
namespace {

// [batch, heads, length, d] -> [batch, length, heads * d]
at::Tensor Joined(const at::Tensor& heads) {
  const at::Tensor t = heads.transpose(1, 2);
  return t.reshape({t.size(0), t.size(1), t.size(2) * t.size(3)});
}

}  // namespace

at::Tensor FusedAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  if (q.numel() == 0) return (q + k + v).reshape({q.size(0), q.size(1), q.size(2) * q.size(3)});  // the kernel refuses
  return Joined(at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), {}, 0.0,
                                                 /*is_causal=*/true));
}

at::Tensor ReferenceAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double dropout,
                              uint32_t dropout_site, const LayerContext& context) {
  const int64_t length = q.size(1);
  const at::Tensor future = at::ones({length, length}, at::TensorOptions(at::kBool)).triu_(1);
  const at::Tensor scores =
      at::matmul(q.transpose(1, 2), k.permute({0, 2, 3, 1})) * (1.0 / std::sqrt(static_cast<double>(q.size(3))));
  at::Tensor p = at::softmax(scores.masked_fill(future, -std::numeric_limits<double>::infinity()), -1);
  p = KeyedDropout(p, dropout, dropout_site, context);
  return Joined(at::matmul(p, v.transpose(1, 2)));
}

at::Tensor ExpandHeads(const at::Tensor& x, int64_t heads) {
  const int64_t group = heads / x.size(2);
  if (group == 1) return x;
  return x.unsqueeze(3)
      .expand({x.size(0), x.size(1), x.size(2), group, x.size(3)})
      .reshape({x.size(0), x.size(1), heads, x.size(3)});
}

}  // namespace penstock::nn
