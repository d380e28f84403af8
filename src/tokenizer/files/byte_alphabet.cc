#include "tokenizer/files/byte_alphabet.h"

#include <array>

#include "tokenizer/bpe/unicode.h"

namespace penstock::tokenizer {
namespace {

struct Alphabet {
  std::array<uint32_t, 256> code_of_byte{};
  std::array<int, 0x144> byte_of_code{};
  Alphabet() {
    byte_of_code.fill(-1);
    uint32_t next = 0x100;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
      code_of_byte[b] = printable ? b : next++;
      byte_of_code[code_of_byte[b]] = static_cast<int>(b);
    }
  }
};

const Alphabet& TheAlphabet() {
  static const Alphabet kAlphabet;
  return kAlphabet;
}

}  // namespace

std::string ToAlphabet(std::string_view bytes) {
  std::string text;
  for (const char b : bytes) AppendUtf8(text, TheAlphabet().code_of_byte[static_cast<unsigned char>(b)]);
  return text;
}

std::optional<std::string> FromAlphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Character c = FrontCharacter(text);
    text.remove_prefix(c.length);
    const auto& byte_of_code = TheAlphabet().byte_of_code;
    if (c.code >= byte_of_code.size() || byte_of_code[c.code] < 0) return std::nullopt;
    bytes += static_cast<char>(byte_of_code[c.code]);
  }
  return bytes;
}

}  // namespace penstock::tokenizer
