// src/huggingface/config_json.h
//
// config.json of a Hugging Face model folder, to and from a model configuration. Known model types: gpt2, llama, and
// mistral where its window does not show (it is computed like llama). Keys are those of transformers 4 and 5.
//
// What would make another function of the same tensors (another activation, biases, a sliding window, an unknown kind
// of RoPE, quantised weights) is refused by name; keys that do not (dtypes, caches) are ignored. Errors:
// UserError that names file and key. Stateless; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/gpt.h"

namespace penstock::huggingface {

// "bos_token_id", "eos_token_id", "pad_token_id": one id or several. They say how text is fed in and where it ends, not
// what is computed.
using SpecialIds = std::map<std::string, std::vector<int64_t>>;
inline constexpr const char* kSpecialIds[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
// "1" or "[1, 2]", as in the file, and back. UserError (`where` names the place) for anything but ids.
std::string FormatIds(const std::vector<int64_t>& ids);
std::vector<int64_t> ParseIds(std::string_view text, const std::string& where);

struct ImportedConfig {
  model::GptConfig model{};          // resolved; dropout 0
  SpecialIds special_ids{};          // those that are there and not null
  std::vector<std::string> notes{};  // what was not taken over, for people
};
ImportedConfig ParseConfigJson(std::string_view text, const std::string& file);

struct ConfigJsonOptions {
  std::string dtype = "float32";  // of the weights beside it, as torch names it
  SpecialIds special_ids{};
};
std::string FormatConfigJson(const model::GptConfig& config, const ConfigJsonOptions& options = {});

}  // namespace penstock::huggingface
