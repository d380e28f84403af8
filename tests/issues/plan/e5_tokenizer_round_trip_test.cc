// Case E5: https://github.com/huggingface/tokenizers/issues/817 , https://github.com/ollama/ollama/pull/15232 ,
// https://github.com/huggingface/transformers/pull/48041
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tokenizer/tokenizer.h"
#include "tokenizer/train_bpe.h"

namespace penstock::tokenizer {
namespace {

std::shared_ptr<const Tokenizer> Trained(const std::string& pattern) {
  BpeTrainer trainer({.vocabulary = 420, .special_tokens = {"<|endoftext|>", "<|user|>"}, .pattern = pattern});
  for (int i = 1; i < 60; ++i)
    trainer.Count("hello" + std::string(static_cast<size_t>(i), ' ') + "world, hello world\n\tcaf\xC3\xA9 " +
                  std::to_string(i));
  const std::string folder = testing::TempDir() + "penstock-e5-" + pattern;
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/tokenizer.json") << trainer.Train().tokenizer_json;
  return LoadTokenizer(folder);
}

std::vector<std::string> Texts() {
  std::vector<std::string> texts = {
      "",
      "\t",
      "\n",
      "\r\n",
      "\t\t\n\n \t",
      "caf\xC3\xA9 cafe\xCC\x81",                                       // composed, decomposed
      "\xF0\x9F\x98\x80 \xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9",  // emoji, joined emoji
      std::string("nul\0nul", 7),
      "\xFF\xFE \x80 \xE2\x82 \xC0\xAF \xED\xA0\x80",  // NUL; bytes that are no UTF-8
      "<|endoftext|>",
      "a <|user|> b",
      "<0x41>",
      "\xE2\x96\x81",
      "\xC4\xA0hello",
      "\xE6\x97\xA5\xE6\x9C\xAC",
  };
  for (size_t n = 1; n < 100; ++n) texts.push_back("hello" + std::string(n, ' ') + "world");
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  texts.push_back(all);
  return texts;
}

TEST(IssueE5, RoundTrip) {
  for (const char* pattern : {"gpt2", "llama3", "qwen2"}) {
    const auto tokenizer = Trained(pattern);
    ASSERT_TRUE(tokenizer->lossless());
    for (const std::string& text : Texts()) {
      EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text) << pattern << ": " << testing::PrintToString(text);
      EXPECT_EQ(tokenizer->Decode(tokenizer->EncodeWithSpecials(text)), text) << testing::PrintToString(text);
    }
  }
}

// Text that looks like a special token is text, unless asked.
TEST(IssueE5, SpecialTokensOnlyWhenAsked) {
  const auto tokenizer = Trained("gpt2");
  const int32_t end = tokenizer->end_of_document();
  for (const int32_t id : tokenizer->Encode("a<|endoftext|><|user|>b")) EXPECT_GT(id, 1);
  EXPECT_EQ(tokenizer->EncodeWithSpecials("<|endoftext|>"), (std::vector<int32_t>{end}));
}

// Ids that were right once (the reference gave the same: tests/tokenizer/reference_test.cc) stay.
TEST(IssueE5, StoredIds) {
  const auto tokenizer = Trained("gpt2");
  const auto ids = [&](const std::string& text) { return testing::PrintToString(tokenizer->Encode(text)); };
  EXPECT_EQ(ids("hello   world"), "{ 269, 258, 270 }");
  EXPECT_EQ(ids("caf\xC3\xA9 cafe\xCC\x81\n\t42"), "{ 275, 222, 272, 70, 138, 225, 200, 199, 21, 19 }");
  EXPECT_EQ(ids("\xFF<|user|>"), "{ 189, 29, 93, 86, 84, 70, 83, 93, 31 }");
}

}  // namespace
}  // namespace penstock::tokenizer
