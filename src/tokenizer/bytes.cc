#include "base/error.h"
#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {

std::vector<int32_t> ByteTokenizer::Encode(std::string_view text) const {
  std::vector<int32_t> ids(text.size());
  for (size_t i = 0; i < text.size(); ++i) ids[i] = static_cast<unsigned char>(text[i]);
  return ids;
}

std::string ByteTokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text(ids.size(), '\0');
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] > 255) throw UserError("token id {} is outside the byte vocabulary [0, 256)", ids[i]);
    text[i] = static_cast<char>(ids[i]);
  }
  return text;
}

}  // namespace penstock::tokenizer
