// src/tokenizer/files/settings.h
//
// What the files beside a tokenizer say about its special tokens: tokenizer_config.json, special_tokens_map.json,
// generation_config.json and config.json of Hugging Face.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {

struct TokenizerSettings {
  std::optional<std::string> end_of_text;
  std::optional<std::string> beginning_of_text;
  std::optional<bool> add_beginning;  // whether sequences start with it
  std::vector<TokenizerFile> files;   // as they were read
};

// Of a folder; files that are not there say nothing. UserError for one that is no JSON object.
TokenizerSettings ReadTokenizerSettings(const std::string& folder);

// The text that published tokenizers use for the end of a text, best first.
const std::vector<std::string>& UsualEndsOfText();

}  // namespace penstock::tokenizer
