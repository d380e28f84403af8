// src/tokenizer/files/bpe_tables.h
//
// From the spelling of tokens and merges in files to the tables of a model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/bpe/added_tokens.h"
#include "tokenizer/bpe/model.h"

namespace penstock::tokenizer {

struct SpelledToken {
  std::string text;
  int64_t id = 0;
};

// UserError unless 0 <= id and not far beyond what `tokens` tokens need (a table of all ids is made).
void CheckTokenId(int64_t id, size_t tokens, const std::string& where);

// "a b" -> (a, b). UserError when there are not two parts.
std::pair<std::string, std::string> SplitMerge(const std::string& line, const std::string& where);

// Fills `tokens` and `merges` of `tables`; with tables.byte_level the texts are spelled in the byte alphabet.
// UserError for ids out of range or given twice, and for merges of or to tokens that are not there.
void FillTables(const std::vector<SpelledToken>& tokens, const std::vector<std::pair<std::string, std::string>>& merges,
                const std::string& where, BpeTables& tables);

// Fills tables.specials. UserError for a special token that is the token of a byte: text with that byte has no other
// id. True when merges spell one.
bool KeepSpecialsOutOfText(const std::vector<AddedToken>& added, const std::string& where, BpeTables& tables);

}  // namespace penstock::tokenizer
