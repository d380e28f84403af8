#include "base/hash.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace penstock {
namespace {

TEST(Hash, Golden) {
  EXPECT_EQ(Hash("").Hex(), "99aa06d3014798d86001c324468d497f");  // the published value of XXH3-128 of nothing
  EXPECT_EQ(Hasher().Digest(), Hash(""));
}

TEST(Hash, PiecesEqualTheWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i);
  Hasher hasher;
  for (size_t i = 0; i < text.size(); i += 7) hasher.Update(std::string_view(text).substr(i, 7));
  EXPECT_EQ(hasher.Digest(), Hash(text));
  EXPECT_EQ(Hasher().Update(uint64_t{258}).Digest(), Hash(std::string_view("\2\1\0\0\0\0\0\0", 8)));
}

TEST(Utf8, Validity) {
  EXPECT_TRUE(IsUtf8("aé漢😀"));
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff", "\xe0\x9f\xbf"})
    EXPECT_FALSE(IsUtf8(bad)) << bad;
}

}  // namespace
}  // namespace penstock
