// Rotary position embedding (Su et al. 2021). Channel i of a head is paired with channel i + d/2 (as the published
// Llama weights of Hugging Face expect); pair i at position t turns by t base^(-2 i / d).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace penstock::nn {

// Cosines and sines [context, head_dim / 2], computed in fp64 and rounded to fp32. Immutable; the blocks of a process
// share one (any thread).
struct RopeTable {
  at::Tensor cosine, sine;                // fp32
  at::Tensor cosine_double, sine_double;  // fp64
};
std::shared_ptr<const RopeTable> GetRopeTable(int64_t context, int64_t head_dim, double base);

// x [batch, length, heads, head_dim] at positions first, first + 1, ... -> the same shape, contiguous. Keeps nothing of
// x.
at::Tensor Rope(const at::Tensor& x, const RopeTable& table, int64_t first = 0);

}  // namespace penstock::nn
