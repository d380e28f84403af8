// tests/sentencepiece_model.h
//
// A SentencePiece model file without its trainer: unigram, byte fallback, a space before a text. The bytes are those of
// sentencepiece_model.proto.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace penstock {

// Pieces: <unk> 0, <s> 1, </s> 2, <0x00> .. <0xFF> 3 .. 258, then `pieces` (spaces are spelled U+2581).
inline std::string SentencePieceModel(const std::vector<std::string>& pieces) {
  const auto varint = [](uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
  };
  const auto number = [&](int field, uint64_t value) {
    return varint(static_cast<uint64_t>(field) << 3) + varint(value);
  };
  const auto bytes = [&](int field, const std::string& value) {
    return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
  };
  std::string model;
  const auto add = [&](const std::string& piece, float score, int type) {
    std::string raw(4, '\0');
    std::memcpy(raw.data(), &score, 4);
    model += bytes(1, bytes(1, piece) + varint(2 << 3 | 5) + raw + number(3, static_cast<uint64_t>(type)));
  };
  constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6, kUnigram = 1;
  add("<unk>", 0, kUnknown);
  add("<s>", 0, kControl);
  add("</s>", 0, kControl);
  for (int b = 0; b < 256; ++b) {
    const char* digits = "0123456789ABCDEF";
    add(std::string("<0x") + digits[b / 16] + digits[b % 16] + ">", 0, kByte);
  }
  for (const std::string& piece : pieces) add(piece, -1.0f - 0.01f * static_cast<float>(pieces.size()), kNormal);
  model += bytes(2, number(3, kUnigram) + number(35, 1));
  return model + bytes(3, bytes(1, "identity") + number(3, 1) + number(4, 0) + number(5, 1));
}

inline std::vector<std::string> SomePieces() {
  const std::string space = "\xE2\x96\x81";
  return {space, space + "the", space + "quick", space + "fox", "a", "e", "h", "t", "x", "\n"};
}

}  // namespace penstock
