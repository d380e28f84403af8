// Causal self-attention. q, k, v [batch, length, heads, head_dim] (k and v already expanded to all heads; strided views
// are fine) -> [batch, length, heads * head_dim], contiguous.
#pragma once

#include <ATen/core/Tensor.h>

#include "nn/layer.h"

namespace penstock::nn {

// libtorch's flash kernel: keeps q, k, v, output and log-sum-exp, never the probabilities.
at::Tensor FusedAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

// Products and softmax written out: the oracle, and the one with keyed dropout on the probabilities.
at::Tensor ReferenceAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double dropout,
                              uint32_t dropout_site, const LayerContext& context);

// [batch, length, kv_heads, d] -> [batch, length, heads, d]: each head of keys or values serves heads / kv_heads
// neighbouring query heads (Ainslie et al. 2023). Its gradient sums over them.
at::Tensor ExpandHeads(const at::Tensor& x, int64_t heads);

}  // namespace penstock::nn
