// Rotary position embedding (Su et al. 2021). Channel i of a head is paired with channel i + d/2 (as the published
// Llama weights of Hugging Face expect); pair i at position t turns by t base^(-2 i / d).
#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

namespace penstock::nn {

// model/gpt.h says what the scalings do.
struct RopeSpec {
  int64_t context = 0;
  int64_t head_dim = 0;
  double base = 10000.0;
  std::string scaling = "none";
  double factor = 1, low_frequency = 1, high_frequency = 4;
  int64_t original_context = 0;
  auto operator<=>(const RopeSpec&) const = default;
};

// Cosines and sines [context, head_dim / 2], computed in fp64 and rounded to fp32. Immutable; the blocks of a process
// share one (any thread).
struct RopeTable {
  at::Tensor cosine, sine;                // fp32
  at::Tensor cosine_double, sine_double;  // fp64
};
std::shared_ptr<const RopeTable> GetRopeTable(const RopeSpec& spec);

// x [batch, length, heads, head_dim] at positions first, first + 1, ... -> the same shape, contiguous. Keeps nothing of
// x.
at::Tensor Rope(const at::Tensor& x, const RopeTable& table, int64_t first = 0);

}  // namespace penstock::nn
