// The steps before the pairs: normalization, pieces, added tokens.
#include <gtest/gtest.h>

#include "base/error.h"
#include "tokenizer/bpe/added_tokens.h"
#include "tokenizer/bpe/normalize.h"
#include "tokenizer/bpe/pretokenize.h"

namespace penstock::tokenizer {
namespace {

using Texts = std::vector<std::string>;

Texts PiecesOf(const PreTokenizer& pre, std::string_view text) {
  Pieces pieces;
  pieces.pieces.push_back({text, true});
  pre.Apply(pieces);
  Texts texts;
  for (const auto& piece : pieces.pieces) texts.emplace_back(piece.text);
  return texts;
}

// UAX #15. U+11A7 after a Hangul syllable is no final consonant: a version of the library loses it.
TEST(Normalizer, UnicodeForms) {
  const auto nfc = MakeUnicodeNormalizer(UnicodeForm::kNfc), nfkd = MakeUnicodeNormalizer(UnicodeForm::kNfkd);
  EXPECT_EQ(nfc->Apply("e\xCC\x81"), "\xC3\xA9");
  EXPECT_EQ(nfkd->Apply("\xC3\xA9"), "e\xCC\x81");
  EXPECT_EQ(nfkd->Apply("\xEF\xAC\x81"), "fi");
  EXPECT_EQ(nfc->Apply("\xEC\xAD\x88\xE1\x86\xA8"), "\xEC\xAD\x89");
  for (const std::string text : {"\xEC\xAD\x88\xE1\x86\xA7", "\xE1\x86\xA7", "\xE1\x86\xA7\xE1\x86\xA7x\xE1\x86\xA7"})
    EXPECT_EQ(nfc->Apply(text), text);
  EXPECT_EQ(nfc->Apply("e\xFF\xCC\x81 \xE2\x82"), "e\xFF\xCC\x81 \xE2\x82") << "bytes that are no UTF-8 stay, and part";
}

TEST(Normalizer, Others) {
  EXPECT_EQ(MakeStrip(true, true)->Apply(" \xC2\xA0 a b\n"), "a b");
  EXPECT_EQ(MakePrepend("_")->Apply(""), "");
  EXPECT_EQ(MakePrepend("_")->Apply("a"), "_a");
  EXPECT_EQ(MakeReplaceRegex(std::make_unique<Regex>(R"(\s+|x)"), "-")->Apply("a  bxc"), "a-b-c");
  EXPECT_EQ(MakeLowercase()->Apply("\xC3\x84\xFF"
                                   "B"),
            "\xC3\xA4\xFF"
            "b");
}

// The scans give the pieces of their regular expressions on random text, with bytes that are no UTF-8 too.
TEST(PreTokenizer, ScansAreTheirExpressions) {
  const Texts alphabet = {"a",
                          "B",
                          "s",
                          "l",
                          "'",
                          "\xC5\xBF",
                          " ",
                          " ",
                          "\n",
                          "\r",
                          "\t",
                          "1",
                          "2",
                          "\xC2\xBD",
                          ".",
                          "-",
                          "\xC2\xA0",
                          "\xE3\x80\x80",
                          "\xE6\x97\xA5",
                          "\xF0\x9F\x98\x80",
                          "\xCC\x81",
                          "\xE1\xA0\x8E",
                          "'s",
                          "'LL",
                          "\xD9\xA3"};
  uint64_t x = 1;
  const auto next = [&] { return x = x * 6364136223846793005u + 1442695040888963407u, x >> 33; };
  for (const ScanPattern pattern : {ScanPattern::kGpt2, ScanPattern::kLlama3, ScanPattern::kQwen2}) {
    EXPECT_EQ(FindScanPattern(RegexOf(pattern)), pattern);
    const auto scan = MakeScan(pattern);
    const auto split =
        MakeSplit(std::make_unique<Regex>(std::string(RegexOf(pattern))), SplitBehavior::kIsolated, false);
    for (int i = 0; i < 20000; ++i) {
      std::string text;
      for (uint64_t n = next() % 12; n > 0; --n) text += alphabet[next() % alphabet.size()];
      ASSERT_EQ(PiecesOf(*scan, text), PiecesOf(*split, text)) << testing::PrintToString(text);
    }
    std::string all;
    for (const std::string& piece : PiecesOf(*scan, "a\xFF\xFE b\xC3 \xE2\x82")) all += piece;
    EXPECT_EQ(all, "a\xFF\xFE b\xC3 \xE2\x82");
  }
}

TEST(PreTokenizer, Behaviors) {
  const auto split = [](SplitBehavior behavior, bool invert = false) {
    return PiecesOf(*MakeSplit("-", behavior, invert), "the-final--countdown");
  };
  EXPECT_EQ(split(SplitBehavior::kRemoved), (Texts{"the", "final", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::kIsolated), (Texts{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::kMergedWithPrevious), (Texts{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::kMergedWithNext), (Texts{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split(SplitBehavior::kContiguous), (Texts{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split(SplitBehavior::kRemoved, true), (Texts{"-", "-", "-"}));
}

TEST(Regex, SpacesAndErrors) {
  EXPECT_FALSE(Regex(R"(\s)").Find("\xE1\xA0\x8E", 0)) << "U+180E is no white space";
  EXPECT_TRUE(Regex(R"([\s\d])").Find("x\xC2\x85", 0));
  EXPECT_FALSE(Regex(R"(.)").Find("\xFF\xFE", 0));
  EXPECT_THROW(Regex("(a"), UserError);
  std::string text(60, 'a');
  text += "b";
  EXPECT_THROW(Regex(R"((a+)+$)").Find(text, 0), UserError) << "backtracks without bound";
}

TEST(AddedTokens, LongestFirstWithItsConditions) {
  const AddedTokenFinder finder({{.id = 1, .text = "<a>", .special = true},
                                 {.id = 2, .text = "<a><b>"},
                                 {.id = 3, .text = "word", .single_word = true},
                                 {.id = 4, .text = "L", .lstrip = true},
                                 {.id = 5, .text = "R", .rstrip = true}});
  const auto split = [&](std::string_view text, bool specials) {
    std::string out;
    finder.Split(
        text, specials, [&](std::string_view part) { (out += '[') += std::string(part) + ']'; },
        [&](int32_t id) { out += std::to_string(id); });
    return out;
  };
  EXPECT_EQ(split("x<a><b><a>", true), "[x]21");
  EXPECT_EQ(split("x<a><b><a>", false), "[x]2[<a>]");
  EXPECT_EQ(split("word words word", true), "3[ words ]3");
  EXPECT_EQ(split("a  L  R  b", true), "[a]4[  ]5[b]");
  EXPECT_EQ(split("", true), "");
}

}  // namespace
}  // namespace penstock::tokenizer
