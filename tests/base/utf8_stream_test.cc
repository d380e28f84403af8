#include "base/utf8_stream.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "base/utf8.h"

namespace penstock {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

TEST(Utf8Stream, HoldsBackTheBeginningOfACharacter) {
  for (const std::string& character : {std::string("a"), std::string("\xC3\xA9"), std::string("\xE2\x82\xAC"),
                                       std::string("\xF0\x9F\x98\x80"), std::string("\xED\x9F\xBF")}) {
    Utf8Stream stream;
    for (size_t i = 0; i + 1 < character.size(); ++i) EXPECT_EQ(stream.Push(character.substr(i, 1)), "");
    EXPECT_EQ(stream.Push(character.substr(character.size() - 1)), character);
    EXPECT_EQ(stream.Finish(), "");
  }
}

// The table 3-8 of the Unicode standard, version 15.
TEST(Utf8Stream, ReplacesAsTheUnicodeStandardSays) {
  EXPECT_EQ(ToValidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            kBad + kBad + kBad + kBad + kBad + kBad + kBad + kBad + "A");
  EXPECT_EQ(ToValidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            kBad + kBad + kBad + kBad + kBad + kBad + kBad + kBad + "A");
  EXPECT_EQ(ToValidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            kBad + kBad + kBad + kBad + kBad + "A" + kBad + kBad + "B");
  EXPECT_EQ(ToValidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), kBad + kBad + kBad + kBad + "A");
  EXPECT_EQ(ToValidUtf8("ok\xE2\x82"), "ok" + kBad);
  EXPECT_EQ(ToValidUtf8(""), "");
}

TEST(Utf8Stream, TheCutsDoNotMatterAndTheOutputIsValid) {
  const PhiloxKey key = MakePhiloxKey(3, "utf8");
  for (uint32_t round = 0; round < 500; ++round) {
    // Random bytes, most of them of the ranges where characters begin and go on.
    std::string bytes;
    for (uint32_t i = 0; i < 40; ++i) {
      const uint32_t word = Philox({i, round, 0, 0}, key)[0];
      bytes += static_cast<char>(word % 3 == 0   ? 0x80 + (word >> 8) % 0x40
                                 : word % 3 == 1 ? 0xC0 + (word >> 8) % 0x40
                                                 : (word >> 8));
    }
    const std::string whole = ToValidUtf8(bytes);
    EXPECT_TRUE(IsUtf8(whole));
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}}) {
      Utf8Stream stream;
      std::string text;
      for (size_t at = 0; at < bytes.size(); at += piece) {
        const std::string shown = stream.Push(bytes.substr(at, piece));
        EXPECT_TRUE(IsUtf8(shown));
        text += shown;
      }
      EXPECT_EQ(text + stream.Finish(), whole);
    }
    // What is valid stays as it is.
    EXPECT_EQ(ToValidUtf8(whole), whole);
  }
}

}  // namespace
}  // namespace penstock
