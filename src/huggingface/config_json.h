// src/huggingface/config_json.h
//
// config.json of a Hugging Face model folder, to and from a model configuration. Known model types: gpt2, llama, and
// mistral where its window does not show (it is computed like llama). Keys are those of transformers 4 and 5.
//
// What would make another function of the same tensors (another activation, biases, a sliding window, an unknown kind
// of RoPE, quantised weights) is refused by name; keys that do not (token ids, dtypes, caches) are ignored. Errors:
// UserError that names file and key. Stateless; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/gpt.h"

namespace penstock::huggingface {

struct ImportedConfig {
  model::GptConfig model{};          // resolved; dropout 0
  std::vector<std::string> notes{};  // what was not taken over, for people
};
ImportedConfig ParseConfigJson(std::string_view text, const std::string& file);

struct ConfigJsonOptions {
  std::string dtype = "float32";  // of the weights beside it, as torch names it
  std::optional<int64_t> beginning_of_text{};
  std::optional<int64_t> end_of_text{};
};
std::string FormatConfigJson(const model::GptConfig& config, const ConfigJsonOptions& options = {});

}  // namespace penstock::huggingface
