// SentencePiece with bytes for the characters that a model does not have.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/utf8.h"
#include "sentencepiece_model.h"
#include "tokenizer/added_text.h"
#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {
namespace {

std::shared_ptr<const Tokenizer> Model() {
  const std::string folder =
      testing::TempDir() + "penstock-sp-" + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/tokenizer.model", std::ios::binary) << SentencePieceModel(SomePieces());
  auto tokenizer = LoadTokenizer(folder);
  std::filesystem::remove_all(folder);
  return tokenizer;
}

constexpr const char* kText = "the quick \xE6\xBC\xA2\xE5\xAD\x97 fox \xF0\x9F\x98\x80 the";

// The library gives U+FFFD for each byte of a character whose last byte is not there yet.
TEST(SentencePiece, BytesStayBytes) {
  const auto tokenizer = Model();
  const std::vector<int32_t> ids = tokenizer->Encode(kText);
  EXPECT_EQ(tokenizer->Decode(ids), kText);
  EXPECT_GT(ids.size(), 15u) << "the characters are spelled in bytes";
  std::string before;
  for (size_t n = 1; n <= ids.size(); ++n) {
    const std::string now = tokenizer->Decode({ids.data(), n});
    EXPECT_TRUE(now.starts_with(before)) << n << ": '" << now << "' after '" << before << "'";
    EXPECT_TRUE(std::string(kText).starts_with(now)) << n << ": '" << now << "'";
    before = now;
  }
  const auto byte = [](int b) { return 3 + b; };
  using Ids = std::vector<int32_t>;
  const std::string e6 = "\xE6";
  EXPECT_EQ(tokenizer->Decode(Ids{byte(0xE6)}), e6);
  EXPECT_EQ(tokenizer->Decode(Ids{byte(0xFF), 260, byte(0xE6), 260}), "\xFF the\xE6 the");
  EXPECT_EQ(tokenizer->Decode(Ids{260, 261}), "the quick") << "without the space before a text";
  EXPECT_EQ(tokenizer->Decode(Ids{1, 260, byte('a'), 2}), "thea") << "control tokens have no text";
}

// Any ids: what is shown token by token is the whole, and nothing is lost when the context of decoding moves on.
TEST(AddedText, IsTheTextOfTheWhole) {
  const auto tokenizer = Model();
  std::mt19937_64 rng(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<int32_t> ids = tokenizer->Encode("the");
    const size_t prompt = ids.size();
    AddedText added(*tokenizer, ids);
    std::string shown = tokenizer->Decode(ids);
    for (int i = 0; i < 200; ++i) {
      const auto id = static_cast<int32_t>(rng() % 3 == 0   ? 3 + 0xE3 + rng() % 8
                                           : rng() % 3 == 0 ? 259 + rng() % 10
                                                            : 3 + 0x80 + rng() % 64);
      ids.push_back(id);
      shown += added.Add(id);
      ASSERT_EQ(shown, tokenizer->Decode(ids)) << "after " << ids.size() - prompt;
    }
  }
}

TEST(AddedText, AfterAPromptThatEndsInsideACharacter) {
  const auto tokenizer = Model();
  const std::vector<int32_t> ids = tokenizer->Encode(kText);
  for (size_t prompt = 1; prompt < ids.size(); ++prompt) {
    AddedText added(*tokenizer, {ids.begin(), ids.begin() + static_cast<ptrdiff_t>(prompt)});
    std::string shown = tokenizer->Decode({ids.data(), prompt});
    for (size_t i = prompt; i < ids.size(); ++i) shown += added.Add(ids[i]);
    EXPECT_EQ(shown, kText) << prompt;
  }
}

}  // namespace
}  // namespace penstock::tokenizer
