// Attention of new positions to all positions before them, whose keys and values are kept: what makes a token cost one
// row instead of a whole sequence when text is generated.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace penstock::nn {

// Of one layer. Positions [0, length) are filled; the owner (nn/decoder.h) moves `length` when all layers have seen the
// new ones. Layers without attention use `length` alone.
struct KeyValueCache {
  int64_t capacity = 0;     // positions
  int64_t length = 0;       // positions that are kept
  at::Tensor keys, values;  // [batch, kv_heads, capacity, head_dim]; undefined before the first use
};

// q [batch, new, heads, d], k and v [batch, new, kv_heads, d] of positions length ... length + new - 1 ->
// [batch, new, heads * d]. Writes k and v into the cache, and does not move its length. No history is kept.
// InternalError when the new positions pass the capacity.
at::Tensor CachedAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, KeyValueCache& cache);

}  // namespace penstock::nn
