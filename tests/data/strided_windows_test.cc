#include "data/strided_windows.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace penstock::data {
namespace {

TokenStream Stream(int64_t tokens) {
  TokenStream stream(1000);
  for (int64_t i = 0; i < tokens; ++i) stream.Append(static_cast<int32_t>(i));  // the token says where it is
  return stream;
}

TEST(StridedWindows, EveryTokenIsPredictedOnceWithEnoughBeforeIt) {
  for (const int64_t tokens : {2, 3, 7, 8, 9, 10, 33, 100})
    for (const int64_t window : {1, 2, 7, 8, 32, 200})
      for (const int64_t stride : {int64_t{1}, (window + 1) / 2, window}) {
        const StridedWindows windows(Stream(tokens), window, stride);
        std::vector<int> predicted(static_cast<size_t>(tokens), 0);
        int64_t valid = 0;
        for (int64_t i = 0; i < windows.size(); ++i) {
          const Sample sample = windows.Get(i);
          ASSERT_EQ(sample.tokens.size(), sample.labels.size());
          ASSERT_EQ(static_cast<int64_t>(sample.tokens.size()), windows.Length(i));
          ASSERT_LE(windows.Length(i), window);
          int64_t counted = 0;
          for (size_t t = 0; t < sample.labels.size(); ++t) {
            EXPECT_EQ(sample.tokens[t], sample.tokens[0] + static_cast<int32_t>(t));
            if (sample.labels[t] == kIgnoredLabel) continue;
            ++counted;
            EXPECT_EQ(sample.labels[t], sample.tokens[t] + 1);
            ++predicted[static_cast<size_t>(sample.labels[t])];
            // Seen before it: positions 0 .. t of the window.
            EXPECT_GE(static_cast<int64_t>(t) + 1, std::min<int64_t>(sample.labels[t], window - stride + 1));
          }
          EXPECT_GT(counted, 0) << "a window for nothing";
          EXPECT_EQ(counted, windows.ValidTokens(i));
          valid += counted;
        }
        EXPECT_EQ(valid, tokens - 1) << tokens << " " << window << " " << stride;
        EXPECT_EQ(predicted[0], 0);
        for (size_t t = 1; t < predicted.size(); ++t) EXPECT_EQ(predicted[t], 1) << t;
      }
}

TEST(StridedWindows, WithoutOverlapTheWindowsOfTraining) {
  for (const int64_t tokens : {2, 17, 33, 100}) {
    const StridedWindows strided(Stream(tokens), 16, 16);
    const TextWindows training(Stream(tokens), {.sequence = 16});
    ASSERT_EQ(strided.size(), training.size());
    for (int64_t i = 0; i < strided.size(); ++i) {
      EXPECT_EQ(strided.Get(i).tokens, training.Get(i).tokens);
      EXPECT_EQ(strided.Get(i).labels, training.Get(i).labels);
    }
  }
  EXPECT_THROW(StridedWindows(Stream(1), 16, 16), UserError);
  EXPECT_NE(StridedWindows(Stream(50), 16, 16).Fingerprint(), StridedWindows(Stream(50), 16, 8).Fingerprint());
}

}  // namespace
}  // namespace penstock::data
