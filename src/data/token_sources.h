// src/data/token_sources.h
//
// What data.path or data.sources name: token files and how much of each. Opening costs no pass over them.
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/token_file.h"
#include "tokenizer/tokenizer.h"

namespace penstock::data {

struct TokenSource {
  std::string path;  // as given, without the weight
  double weight = 1;
  std::shared_ptr<const TokenFile> train;
  std::shared_ptr<const TokenFile> validation;  // null when the folder has none
};

// "path" or "path=weight"; a path may hold '=' when a weight follows. UserError for a weight that is no positive
// number.
TokenSource ParseTokenSource(std::string_view text);

// A folder with train.tokens and perhaps validation.tokens (`penstock tokenize`), or one token file. UserError when
// there is none, and when two of them are of different tokenizers.
std::vector<TokenSource> OpenTokenSources(const std::vector<std::string>& texts);

// The tokenizer of the sources: "bytes", the files in the folder beside the tokens, or the place that the file names.
// UserError when none of them is there, or it is not the one that the tokens were made with.
std::shared_ptr<const tokenizer::Tokenizer> TokenizerOf(const std::vector<TokenSource>& sources);

}  // namespace penstock::data
