// src/tokenizer/added_text.h
//
// The text that tokens add to those before them. Decoded together with some of these, because a character may need
// several tokens and a tokenizer may treat the first one of a text apart (a leading space). What Add gives, in a row,
// is what Decode of all tokens adds to that of the prompt, whole characters or not (base/utf8_stream.h shows such
// text). Threads: one at a time. The tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {

class AddedText {
 public:
  AddedText(const Tokenizer& tokenizer, std::vector<int32_t> prompt);
  std::string Add(int32_t id);

 private:
  static constexpr size_t kContext = 32;
  void Anchor();

  const Tokenizer& tokenizer_;
  std::vector<int32_t> ids_;
  size_t first_ = 0;  // ids from here on are decoded
  size_t shown_ = 0;  // bytes of their text that are given out
};

}  // namespace penstock::tokenizer
