// A tokenizer learned from files: the same for any threads and pieces, and what is refused.
#include "data/train_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/error.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

class TrainTokenizerFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/penstock_train_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  TrainTokenizerOptions Options() const {
    TrainTokenizerOptions options;
    options.text.inputs = {folder_};
    options.bpe.vocabulary = 400;
    return options;
  }
  std::string folder_;
};

// Words, numbers, marks and white space of many kinds, lines of any length.
std::string AnyText(size_t size, unsigned seed) {
  const std::vector<std::string> words = {"alpha",
                                          "beta's",
                                          "don't",
                                          "x1",
                                          "1234567",
                                          "\xE6\xBC\xA2\xE5\xAD\x97",
                                          "e\xCC\x81t\xC3\xA9",
                                          "\xEF\xAC\x81n",
                                          "--",
                                          "foo_bar()",
                                          "\xFF",
                                          "\xF0\x9F\x98\x80",
                                          "Zeta",
                                          "'S"};
  const std::vector<std::string> gaps = {" ",    " ",  " ",    "  ", "\n",  "\n\n",
                                         "\r\n", "\t", "\n  ", "",   " \n", "\xC2\xA0"};
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < size) text += words[random() % words.size()] + gaps[random() % gaps.size()];
  return text;
}

// A document that is longer than a piece is counted in parts; words must not be counted in two halves.
TEST_F(TrainTokenizerFiles, SameForAnyThreadsAndPieces) {
  Write("a.txt", AnyText(60000, 1) + "\n<end>\n" + AnyText(3000, 2));
  std::string lines;
  for (unsigned i = 0; i < 40; ++i)
    lines +=
        nlohmann::json{{"text", AnyText(900, i)}}.dump(-1, ' ', true, nlohmann::json::error_handler_t::ignore) + "\n";
  Write("b.jsonl", lines);
  for (const char* pattern : {"gpt2", "llama3", "qwen2", R"(\p{L}+|[^\p{L}]+)"})
    for (const char* normalizer : {"none", "nfc", "nfkc"}) {
      TrainTokenizerOptions options = Options();
      options.document_separator = "<end>";
      options.bpe.pattern = pattern;
      options.bpe.normalizer = normalizer;
      options.piece_bytes = 1 << 26;
      const TrainTokenizerResult whole = TrainTokenizer(options);
      EXPECT_EQ(whole.documents, 2 + 40);
      EXPECT_EQ(whole.trained.vocabulary, 400);
      for (const int threads : {1, 2, 5})
        for (const int64_t piece : {300, 5000}) {
          options.threads = threads;
          options.piece_bytes = piece;
          const TrainTokenizerResult parts = TrainTokenizer(options);
          EXPECT_EQ(parts.trained.tokenizer_json, whole.trained.tokenizer_json) << pattern << normalizer << piece;
          EXPECT_EQ(parts.trained.pieces, whole.trained.pieces);
          EXPECT_EQ(parts.documents, whole.documents);
          EXPECT_EQ(parts.text_bytes, whole.text_bytes);
        }
    }
}

// ... and a cut at any place is not the same: the test above can fail.
TEST(TrainTokenizer, ACutInAWordShows) {
  tokenizer::BpeTrainer whole({.vocabulary = 400}), parts({.vocabulary = 400});
  const std::string text = AnyText(3000, 4);
  whole.Count(text);
  for (size_t at = 0; at < text.size(); at += 7) parts.Count(std::string_view(text).substr(at, 7));
  EXPECT_NE(whole.Train().tokenizer_json, parts.Train().tokenizer_json);
}

TEST_F(TrainTokenizerFiles, FewerTokensThanAskedFor) {
  Write("a.txt", "aaa bbb aaa bbb");
  TrainTokenizerOptions options = Options();
  const TrainTokenizerResult result = TrainTokenizer(options);
  // Twice " bbb" in pieces "aaa", " bbb", " aaa", " bbb": aa, aaa, bb, bbb, " bbb" (" aaa" once).
  EXPECT_EQ(result.trained.merges, 5);
  EXPECT_EQ(result.trained.vocabulary, 257 + 5);
  EXPECT_EQ(result.trained.pieces, 4);
  EXPECT_EQ(result.trained.distinct_pieces, 3);
}

TEST_F(TrainTokenizerFiles, SaysWhatIsCountedAndLearned) {
  Write("a.txt", AnyText(200000, 3));
  std::ostringstream said;
  double now = 0;
  TrainTokenizerOptions options = Options();
  options.piece_bytes = 10000;
  TrainTokenizer(options, {.out = &said, .terminal = false, .clock = [&] { return now += 2; }});
  EXPECT_NE(said.str().find("count: 100 %"), std::string::npos) << said.str();
  EXPECT_NE(said.str().find("merge: "), std::string::npos) << said.str();
  EXPECT_NE(said.str().find(" of 400"), std::string::npos) << said.str();
}

TEST_F(TrainTokenizerFiles, RefusesWhatIsNoText) {
  const auto refused = [](const TrainTokenizerOptions& options, const std::string& what) {
    try {
      TrainTokenizer(options);
      ADD_FAILURE() << what;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  TrainTokenizerOptions options = Options();
  refused(options, "has no file with text in it");
  Write("a.bin", std::string(100, '\0'));
  refused(options, "there is no text: 1 files are no text");
  options.text.inputs = {folder_ + "/a.bin"};
  refused(options, "is not text");
  options.text.inputs = {folder_ + "/none"};
  refused(options, "is not there");
  Write("b.jsonl", "{\"text\": \"yes\"}\n{\"body\": 1}\n");
  options.text.inputs = {folder_ + "/b.jsonl"};
  refused(options, "line 2");
  options.skip_malformed = true;
  EXPECT_EQ(TrainTokenizer(options).malformed_lines, 1);
  options.bpe.vocabulary = 256;
  refused(options, "at least 257");
  options.bpe.vocabulary = 300;
  options.bpe.pattern = "gtp2";
  refused(options, "known: gpt2");
}

}  // namespace
}  // namespace penstock::data
