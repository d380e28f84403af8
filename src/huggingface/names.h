// src/huggingface/names.h
//
// Which tensor of a Hugging Face model each of our parameters is. GPT-2's matrices are stored there [in, out] (Conv1D)
// and are transposed; q, k, v lie one after another in both. Llama's rotary halves lie as ours do
// (nn/functions/rope.h), so that its tensors are copied as they are. A tied head has no tensor of its own here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/spec.h"

namespace penstock::huggingface {

struct MappedTensor {
  std::string theirs{};  // as the model with a head names it: "transformer.h.0.attn.c_attn.weight"
  bool transposed = false;
  std::vector<int64_t> shape{};  // as it is there
};

// One for each of spec.parameters, in that order. InternalError for a family other than gpt2 and llama.
std::vector<MappedTensor> MapParameters(const model::ModelSpec& spec);

inline constexpr const char* kHeadName = "lm_head.weight";
// "h.0.attn.c_attn.weight": the name in a model that was saved without its head.
std::string_view WithoutHeadPrefix(std::string_view theirs);
// Constants that older versions of the library saved beside the weights: causal masks, rotary frequencies.
bool IsConstantBuffer(std::string_view theirs);

}  // namespace penstock::huggingface
