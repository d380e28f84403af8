#include "tokenizer/bpe/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

namespace penstock::tokenizer {
namespace {

uint8_t ComputeClass(uint32_t code) {
  uint8_t bits = 0;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      bits |= kLetter | kWord;
      break;
    case UTF8PROC_CATEGORY_ND:
      bits |= kNumber | kDecimal | kWord;
      break;
    case UTF8PROC_CATEGORY_NL:
      bits |= kNumber | kWord;
      break;
    case UTF8PROC_CATEGORY_NO:
      bits |= kNumber;
      break;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      bits |= kMark | kWord;
      break;
    case UTF8PROC_CATEGORY_PC:
      bits |= kPunctuation | kWord;
      break;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      bits |= kPunctuation;
      break;
    default:
      break;
  }
  const bool space = (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
                     (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
                     code == 0x205F || code == 0x3000;
  if (space) bits |= kSpace;
  if (code == '\r' || code == '\n') bits |= kLineEnd;
  if (code == 0x200C || code == 0x200D) bits |= kWord;  // Join_Control
  return bits;
}

}  // namespace

Character BackCharacter(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(4, text.size()); ++n) {
    const std::string_view tail = text.substr(text.size() - n);
    if ((static_cast<unsigned char>(tail[0]) & 0xC0) == 0x80) continue;
    const Character front = FrontCharacter(tail);
    if (front.length == n) return front;
    break;
  }
  return {};
}

void AppendUtf8(std::string& text, uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
}

const uint8_t* CharacterClasses() {
  static const std::vector<uint8_t> kClasses = [] {
    std::vector<uint8_t> classes(0x110000);
    for (uint32_t code = 0; code < classes.size(); ++code) classes[code] = ComputeClass(code);
    return classes;
  }();
  return kClasses.data();
}

}  // namespace penstock::tokenizer
