// src/tokenizer/bpe/unicode.h
//
// Characters of a text that may hold bytes which are not UTF-8, and the classes that pre-tokenizers ask for (general
// categories of utf8proc; White_Space of Unicode's PropList).
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace penstock::tokenizer {

inline constexpr uint32_t kNoCharacter = 0xFFFFFFFF;  // a byte that is not part of a character

struct Character {
  uint32_t code = kNoCharacter;
  uint32_t length = 1;  // bytes
};

// The character at the front of `text`, which is not empty.
inline Character FrontCharacter(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  if (byte(0) < 0x80) return {byte(0), 1};
  switch (Utf8Length(text)) {
    case 2:
      return {(byte(0) & 0x1F) << 6 | (byte(1) & 0x3F), 2};
    case 3:
      return {(byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
    case 4:
      return {(byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
    default:
      return {};
  }
}

// The character that ends at the end of `text`, which is not empty.
Character BackCharacter(std::string_view text);

void AppendUtf8(std::string& text, uint32_t code);

enum CharacterClass : uint8_t {
  kLetter = 1,        // \p{L}
  kNumber = 2,        // \p{N}
  kSpace = 4,         // \s: White_Space
  kLineEnd = 8,       // \r or \n
  kPunctuation = 16,  // \p{P}
  kMark = 32,         // \p{M}
  kDecimal = 64,      // \p{Nd}
  kWord = 128,        // \w: alphabetic, mark, decimal digit, connector punctuation, join control
};

// A table of all code points, made at the first use (1.1 MB).
const uint8_t* CharacterClasses();

inline uint8_t ClassOf(const uint8_t* classes, uint32_t code) { return code == kNoCharacter ? 0 : classes[code]; }

}  // namespace penstock::tokenizer
