// src/tokenizer/bpe/added_tokens.h
//
// Tokens that are found in the text before it is cut in pieces. Where several match the one that starts first is taken,
// of those the longest.
// Threads: immutable after construction.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::tokenizer {

struct AddedToken {
  int32_t id = 0;
  std::string text;
  bool special = false;      // not taken from text that nobody vouches for
  bool single_word = false;  // only where it does not touch a letter, digit or underscore
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // ... and after it
  bool normalized = false;   // is looked for in the normalized text
};

class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);
  bool empty() const { return tokens_.empty(); }
  // Calls `token` for what is found and `text` for what is between, in order. Special ones are looked for with
  // `with_specials`.
  void Split(std::string_view whole, bool with_specials, const std::function<void(std::string_view)>& text,
             const std::function<void(int32_t)>& token) const;

 private:
  const AddedToken* LongestAt(std::string_view rest, bool with_specials) const;

  std::vector<AddedToken> tokens_;     // longest first
  std::vector<size_t> by_first_[256];  // places in tokens_, by first byte
};

}  // namespace penstock::tokenizer
