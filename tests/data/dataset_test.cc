#include "data/dataset.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/entropy.h"
#include "tokenizer/tokenizer.h"

namespace penstock::data {
namespace {

TokenStream Stream(std::string_view text) {
  TokenStream stream(256);
  stream.Append(tokenizer::ByteTokenizer().Encode(text));
  return stream;
}

std::string Text(const std::vector<int32_t>& ids) { return tokenizer::ByteTokenizer().Decode(ids); }

TEST(TokenStream, EveryWidth) {
  for (const int32_t vocabulary : {2, 256, 257, 65536, 65537, 1 << 24}) {
    TokenStream stream(vocabulary);
    for (const int32_t id : {0, 1, vocabulary - 1, vocabulary / 2}) stream.Append(id);
    EXPECT_EQ(stream.size(), 4);
    EXPECT_EQ(stream[2], vocabulary - 1);
    EXPECT_EQ(stream[3], vocabulary / 2);
    EXPECT_THROW(stream.Append(vocabulary), InternalError);
  }
}

TEST(TextWindows, CutsWithoutOverlap) {
  const TextWindows windows(Stream("abcdefghijk"), {.sequence = 4});
  ASSERT_EQ(windows.size(), 3);
  EXPECT_EQ(Text(windows.Get(0).tokens), "abcd");
  EXPECT_EQ(Text(windows.Get(0).labels), "bcde");
  EXPECT_EQ(Text(windows.Get(1).tokens), "efgh");
  EXPECT_EQ(Text(windows.Get(2).tokens), "ij");
  EXPECT_EQ(Text(windows.Get(2).labels), "jk");
  EXPECT_EQ(windows.Length(2), 2);
  const TextWindows whole(Stream("abcdefghijk"), {.sequence = 4, .keep_short_window = false});
  EXPECT_EQ(whole.size(), 2);
  EXPECT_NE(windows.Fingerprint(), whole.Fingerprint());
  EXPECT_EQ(windows.Fingerprint(), TextWindows(Stream("abcdefghijk"), {.sequence = 4}).Fingerprint());
}

// Every label but the first token of the text is seen exactly once, whatever the sizes.
TEST(TextWindows, EveryTokenIsPredictedOnce) {
  for (int64_t n = 2; n < 40; ++n) {
    for (int64_t sequence = 1; sequence < 12; ++sequence) {
      std::string text;
      for (int64_t i = 0; i < n; ++i) text += static_cast<char>('!' + i);
      const TextWindows windows(Stream(text), {.sequence = sequence});
      std::string labels;
      for (int64_t i = 0; i < windows.size(); ++i) {
        const Sample sample = windows.Get(i);
        EXPECT_EQ(static_cast<int64_t>(sample.tokens.size()), windows.Length(i));
        EXPECT_EQ(windows.ValidTokens(i), windows.Length(i));
        labels += Text(sample.labels);
      }
      EXPECT_EQ(labels, text.substr(1));
    }
  }
}

TEST(TextWindows, MaskedPrefix) {
  const TextWindows windows(Stream("abcdefghijk"), {.sequence = 4, .masked_prefix = 2});
  EXPECT_EQ(windows.size(), 2);  // the window "ij" would have no label
  EXPECT_EQ(windows.Get(1).labels, (std::vector<int32_t>{kIgnoredLabel, kIgnoredLabel, 'h', 'i'}));
  EXPECT_EQ(windows.ValidTokens(1), 2);
}

TEST(TextWindows, TooShort) {
  EXPECT_THROW(TextWindows(Stream(""), {.sequence = 4}), UserError);
  EXPECT_THROW(TextWindows(Stream("a"), {.sequence = 4}), UserError);
  EXPECT_EQ(TextWindows(Stream("ab"), {.sequence = 4}).size(), 1);
  EXPECT_THROW(TextWindows(Stream("abcd"), {.sequence = 4, .keep_short_window = false}), UserError);
  EXPECT_EQ(TextWindows(Stream("abcde"), {.sequence = 4, .keep_short_window = false}).size(), 1);
}

TEST(ListDataset, SaysWhatItHolds) {
  const ListDataset data = ListDataset::Random({3, 0, 5}, 67, 1, true);
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.Length(2), 5);
  EXPECT_EQ(data.ValidTokens(2), 4);
  EXPECT_EQ(data.ValidTokens(1), 0);
  const Sample sample = data.Get(2);
  for (size_t t = 0; t + 1 < sample.labels.size(); ++t) EXPECT_EQ(sample.labels[t], sample.tokens[t + 1]);
  EXPECT_NE(data.Fingerprint(), ListDataset::Random({3, 0, 5}, 67, 2, true).Fingerprint());
}

TEST(Entropy, OfKnownFrequencies) {
  EXPECT_EQ(UnigramEntropy(Stream("")), 0);
  EXPECT_EQ(UnigramEntropy(Stream("aaaa")), 0);
  EXPECT_NEAR(UnigramEntropy(Stream("abab")), std::log(2.0), 1e-15);
  EXPECT_NEAR(UnigramEntropy(Stream("aab")), std::log(3.0) - 2.0 / 3 * std::log(2.0), 1e-15);
}

}  // namespace
}  // namespace penstock::data
