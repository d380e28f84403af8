#include "nn/functions/cached_attention.h"

#include <torch/types.h>

#include "base/error.h"

namespace penstock::nn {

at::Tensor CachedAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, KeyValueCache& cache) {
  const int64_t batch = q.size(0), fresh = q.size(1), heads = q.size(2), d = q.size(3), kv_heads = k.size(2);
  const int64_t total = cache.length + fresh, group = heads / kv_heads;
  PENSTOCK_CHECK(total <= cache.capacity, "{} positions in a cache of {}", total, cache.capacity);
  if (!cache.keys.defined()) {
    cache.keys = at::empty({batch, kv_heads, cache.capacity, d}, k.options());
    cache.values = at::empty({batch, kv_heads, cache.capacity, d}, v.options());
  }
  cache.keys.narrow(2, cache.length, fresh).copy_(k.transpose(1, 2));
  cache.values.narrow(2, cache.length, fresh).copy_(v.transpose(1, 2));
  const at::Tensor keys = cache.keys.narrow(2, 0, total), values = cache.values.narrow(2, 0, total);
  if (fresh == 1) {
    // One position sees everything, so no mask, and the query heads that share keys can stand where positions stand:
    // nothing of the cache is copied.
    const at::Tensor queries = q.reshape({batch, kv_heads, group, d});
    return at::scaled_dot_product_attention(queries, keys, values).reshape({batch, 1, heads * d});
  }
  const auto expanded = [&](const at::Tensor& x) {
    if (group == 1) return x;
    return x.unsqueeze(2).expand({batch, kv_heads, group, total, d}).reshape({batch, heads, total, d});
  };
  // New position i stands at length + i. (The kernel's own causal mask would take it for i.)
  std::optional<at::Tensor> mask;
  if (cache.length > 0) mask = at::ones({fresh, total}, at::TensorOptions(at::kBool)).tril_(cache.length);
  const at::Tensor attended =
      at::scaled_dot_product_attention(q.transpose(1, 2), expanded(keys), expanded(values), mask, 0.0,
                                       /*is_causal=*/!mask.has_value());
  return attended.transpose(1, 2).reshape({batch, fresh, heads * d});
}

}  // namespace penstock::nn
