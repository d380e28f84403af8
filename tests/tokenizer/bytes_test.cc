#include <gtest/gtest.h>

#include "base/error.h"
#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {
namespace {

// Case E5: any bytes survive.
TEST(ByteTokenizer, RoundTrip) {
  const ByteTokenizer tokenizer;
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (const std::string& text :
       {all, std::string(), std::string("hello      world\t\n"), std::string("e\u0301 \u00e9 \U0001f600 <|endoftext|>"),
        std::string("\xff\xfe\0\x80", 4)}) {
    EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text)), text);
    EXPECT_EQ(tokenizer.Encode(text).size(), text.size());
  }
  EXPECT_EQ(tokenizer.Encode("a\xff"), (std::vector<int32_t>{97, 255}));
  EXPECT_THROW(tokenizer.Decode(std::vector<int32_t>{256}), UserError);
  EXPECT_THROW(tokenizer.Decode(std::vector<int32_t>{-1}), UserError);
}

}  // namespace
}  // namespace penstock::tokenizer
