#include "data/tokenize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "base/error.h"
#include "base/faulty_file_system.h"
#include "base/file_lock.h"
#include "data/token_file.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

// Ids of runs of white space and of runs of other bytes, so that cutting in the wrong place changes them: id of a run =
// hash of it. A stand-in for a byte-level BPE, whose pieces behave like that.
class RunTokenizer : public tokenizer::Tokenizer {
 public:
  explicit RunTokenizer(int32_t vocabulary = 50'000) : vocabulary_(vocabulary) {}
  std::string name() const override { return "runs"; }
  int32_t vocabulary() const override { return vocabulary_; }
  int32_t end_of_document() const override { return vocabulary_ - 1; }
  bool lossless() const override { return false; }
  std::string Fingerprint() const override { return "runs" + std::to_string(vocabulary_); }
  std::vector<int32_t> Encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
    for (size_t begin = 0, end; begin < text.size(); begin = end) {
      for (end = begin + 1; end < text.size() && space(text[end]) == space(text[begin]); ++end) {
      }
      ids.push_back(
          static_cast<int32_t>(Hash(text.substr(begin, end - begin)).low % static_cast<uint64_t>(vocabulary_ - 1)));
    }
    return ids;
  }
  std::string Decode(std::span<const int32_t>) const override { return ""; }
  bool CutsAtLines() const override { return true; }
  std::vector<tokenizer::TokenizerFile> files() const override { return {{"tokenizer.json", "{}"}}; }

 private:
  int32_t vocabulary_;
};

class TokenizeTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/penstock_tokenize_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_ + "/in");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Put(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(root_ + "/in/" + name).parent_path());
    std::ofstream(root_ + "/in/" + name, std::ios::binary) << text;
  }
  // A few megabytes of every kind of input.
  void PutMixture(size_t lines = 30'000) {
    std::mt19937_64 rng(11);
    const auto text = [&](size_t n) {
      std::string out;
      for (; n > 0; --n) {
        for (size_t words = rng() % 12; words > 0; --words) out += "w" + std::to_string(rng() % 3000) + " ";
        out += rng() % 4 == 0 ? "end.\nNext" : rng() % 3 == 0 ? "\n\n" : "x\n";
      }
      return out;
    };
    Put("big.txt", text(lines));
    for (int i = 0; i < 40; ++i) Put("small/" + std::to_string(i) + ".txt", text(rng() % 20));
    std::string jsonl;
    for (size_t i = 0; i < lines / 10; ++i)
      jsonl += R"({"n": )" + std::to_string(i) + R"(, "text": "line\n)" + std::to_string(rng() % 1000) +
               (i % 50 == 7 ? "\"}\n\n" : " \\u00e9\"}\n");
    Put("docs.jsonl", jsonl);
    Put("picture.png", std::string("\x89PNG\0\0\0\0", 8));
  }
  TokenizeOptions Options(const std::string& out) const {
    TokenizeOptions options;
    options.inputs = {root_ + "/in"};
    options.out = root_ + "/" + out;
    options.validation = 0.2;
    return options;
  }
  std::map<std::string, std::string> Files(const std::string& out) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root_ + "/" + out))
      if (entry.is_regular_file())
        files[entry.path().lexically_relative(root_ + "/" + out).string()] = ReadFile(entry.path().string());
    return files;
  }
  std::string Fault(const TokenizeOptions& options) {
    try {
      Tokenize(options, tokenizer_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  std::string root_;
  RunTokenizer tokenizer_;
};

TEST_F(TokenizeTest, TokensAreThoseOfWholeDocuments) {
  PutMixture();
  TokenizeOptions options = Options("out");
  options.validation = 0;
  options.piece_bytes = 70'000;
  const TokenizeResult result = Tokenize(options, tokenizer_);
  EXPECT_EQ(result.skipped_files, 1);
  EXPECT_EQ(result.files, 43);
  const TokenFile file(root_ + "/out/train.tokens");
  file.Verify();
  EXPECT_EQ(file.info().fingerprint, tokenizer_.Fingerprint());
  EXPECT_EQ(file.documents(), result.documents[0]);
  EXPECT_FALSE(fs::exists(root_ + "/out/validation.tokens"));
  EXPECT_FALSE(fs::exists(root_ + "/out/tokenize.parts"));
  EXPECT_FALSE(fs::exists(root_ + "/out/tokenize.lock"));
  EXPECT_EQ(ReadFile(root_ + "/out/tokenizer/tokenizer.json"), "{}");
  // big.txt is the first: cut in several pieces, and yet the ids of the whole.
  const std::string big = ReadFile(root_ + "/in/big.txt");
  ASSERT_GT(big.size(), size_t{900'000});
  std::vector<int32_t> expected = tokenizer_.Encode(big);
  expected.push_back(tokenizer_.end_of_document());
  ASSERT_EQ(file.Document(0).end, static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(file[static_cast<int64_t>(i)], expected[i]) << i;
  // Then docs.jsonl, a document per line.
  const std::vector<int32_t> line = tokenizer_.Encode("line\n");
  EXPECT_EQ(file[file.Document(1).begin], line[0]);
  EXPECT_EQ(file.documents(), 1 + 3000 + 40 - result.empty_documents -
                                  std::count_if(fs::directory_iterator(root_ + "/in/small"), fs::directory_iterator(),
                                                [](const auto& entry) { return entry.file_size() == 0; }));
}

TEST_F(TokenizeTest, ThreadsAndPartsDoNotChangeTheResult) {
  PutMixture(12'000);
  Tokenize(Options("one"), tokenizer_);
  const auto expected = Files("one");
  EXPECT_EQ(expected.size(), 4u);
  for (const int threads : {2, 5}) {
    for (const int64_t part : {int64_t{1}, int64_t{300'000}}) {
      TokenizeOptions options = Options("other");
      options.threads = threads;
      options.part_bytes = part;
      options.piece_bytes = threads * 50'000;
      options.overwrite = true;
      Tokenize(options, tokenizer_);
      EXPECT_EQ(Files("other"), expected) << threads << " " << part;
    }
  }
}

// Whatever operation fails, and whether or not the process lives on: the same command ends with the same files.
TEST_F(TokenizeTest, GoesOnAfterAnyFailure) {
  PutMixture(3'000);
  Tokenize(Options("whole"), tokenizer_);
  const auto expected = Files("whole");
  TokenizeOptions options = Options("out");
  options.part_bytes = 40'000;
  options.piece_bytes = 10'000;
  options.threads = 2;
  FaultyFileSystem faulty;
  faulty.set_fault({});
  Tokenize(options, tokenizer_, {}, faulty);
  const int64_t operations = faulty.operations();
  EXPECT_GT(operations, 60);
  int resumed = 0;
  for (const bool crash : {false, true}) {
    for (int64_t k = 1; k <= operations; k += operations / 13 + 1) {
      fs::remove_all(options.out);
      faulty.set_fault({.operation = k, .written = 0.3, .crash = crash});
      EXPECT_THROW(Tokenize(options, tokenizer_, {}, faulty), WorldError) << k;
      const TokenizeResult result = Tokenize(options, tokenizer_);
      EXPECT_EQ(Files("out"), expected) << k << crash;
      resumed += result.resumed_bytes > 0;
    }
  }
  EXPECT_GT(resumed, 8);
}

TEST_F(TokenizeTest, ADamagedPartIsMadeAgain) {
  PutMixture(2'000);
  Tokenize(Options("whole"), tokenizer_);
  TokenizeOptions options = Options("out");
  options.part_bytes = 30'000;
  options.piece_bytes = 10'000;
  FaultyFileSystem faulty;
  faulty.set_fault({});
  Tokenize(options, tokenizer_, {}, faulty);
  const int64_t operations = faulty.operations();
  fs::remove_all(options.out);
  faulty.set_fault({.operation = operations - 12, .crash = true});
  EXPECT_THROW(Tokenize(options, tokenizer_, {}, faulty), WorldError);
  const std::string part = options.out + "/tokenize.parts/part-000001.train";
  std::string bytes = ReadFile(part);
  ASSERT_GT(bytes.size(), 1000u);
  bytes[500] = static_cast<char>(bytes[500] + 1);
  std::ofstream(part, std::ios::binary) << bytes;
  EXPECT_THROW(Tokenize(options, tokenizer_), WorldError);
  Tokenize(options, tokenizer_);
  EXPECT_EQ(Files("out"), Files("whole"));
}

TEST_F(TokenizeTest, ACompleteFolderIsLeftAlone) {
  PutMixture(200);
  Tokenize(Options("out"), tokenizer_);
  const TokenizeResult again = Tokenize(Options("out"), tokenizer_);
  EXPECT_TRUE(again.was_complete);
  EXPECT_GT(again.tokens[0], 0);
  TokenizeOptions other = Options("out");
  other.jsonl_field = "n";
  EXPECT_NE(Fault(other).find("exists already and is not overwritten"), std::string::npos) << Fault(other);
  other.jsonl_field = "text";
  other.validation_seed = 1;
  other.overwrite = true;
  const auto before = Files("out");
  Tokenize(other, tokenizer_);
  EXPECT_NE(Files("out")["validation.tokens"], before.at("validation.tokens"));
}

TEST_F(TokenizeTest, AnotherJobDoesNotGoOnWithTheParts) {
  PutMixture(2'000);
  TokenizeOptions options = Options("out");
  options.part_bytes = 30'000;
  options.piece_bytes = 10'000;
  FaultyFileSystem faulty;
  faulty.set_fault({.operation = 60, .crash = true});
  EXPECT_THROW(Tokenize(options, tokenizer_, {}, faulty), WorldError);
  TokenizeOptions other = options;
  other.validation = 0.3;
  EXPECT_NE(Fault(other).find("--validation: 0.2 there, 0.3 now"), std::string::npos) << Fault(other);
  Put("zzz.txt", "one more");
  EXPECT_NE(Fault(options).find("number of files: "), std::string::npos) << Fault(options);
  EXPECT_THROW(Tokenize(options, RunTokenizer(40'000)), UserError);
  options.overwrite = true;
  EXPECT_EQ(Tokenize(options, tokenizer_).resumed_bytes, 0);
}

TEST_F(TokenizeTest, TheSplitIsByDocumentAndStays) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += R"({"text": "d)" + std::to_string(i) + "\"}\n";
  Put("a.jsonl", lines);
  const TokenizeResult result = Tokenize(Options("out"), tokenizer_);
  EXPECT_NEAR(static_cast<double>(result.documents[1]), 4000, 5 * std::sqrt(20'000 * 0.2 * 0.8));
  EXPECT_EQ(result.documents[0] + result.documents[1], 20'000);
  // The same documents are held back when another file comes before them.
  Put("0.txt", "another");
  Tokenize(Options("more"), tokenizer_);
  const TokenFile before(root_ + "/out/validation.tokens"), after(root_ + "/more/validation.tokens");
  const int64_t extra = after.documents() - before.documents();
  ASSERT_TRUE(extra == 0 || extra == 1);
  for (int64_t d = 0; d < before.documents(); ++d)
    ASSERT_EQ(before[before.Document(d).begin], after[after.Document(d + extra).begin]);
}

TEST_F(TokenizeTest, BadInputSaysWhatWouldWork) {
  EXPECT_NE(Fault(Options("out")).find("has no file with text"), std::string::npos);
  Put("a.bin", std::string(100, '\0'));
  EXPECT_NE(Fault(Options("out")).find("there is no text"), std::string::npos);
  TokenizeOptions named = Options("out2");
  named.inputs = {root_ + "/in/a.bin"};
  EXPECT_NE(Fault(named).find("a.bin' is not text"), std::string::npos) << Fault(named);
  named.inputs = {root_ + "/none"};
  EXPECT_NE(Fault(named).find("none' is not there"), std::string::npos);
  Put("b.jsonl", "{\"text\": \"good\"}\n\n{\"txt\": \"bad\"}\n");
  EXPECT_NE(Fault(Options("out3")).find("b.jsonl' line 3: 'text' is not there"), std::string::npos)
      << Fault(Options("out3"));
  TokenizeOptions skip = Options("out5");
  skip.skip_malformed = true;
  const TokenizeResult result = Tokenize(skip, tokenizer_);
  EXPECT_EQ(result.malformed_lines, 1);
  EXPECT_EQ(result.documents[0] + result.documents[1], 1);
  fs::create_directories(root_ + "/out4");
  std::ofstream(root_ + "/out4/train.tokens") << "mine";
  EXPECT_NE(Fault(Options("out4")).find("is not overwritten"), std::string::npos);
  EXPECT_EQ(ReadFile(root_ + "/out4/train.tokens"), "mine");
}

TEST_F(TokenizeTest, OneProcessAtATime) {
  PutMixture(10);
  fs::create_directories(root_ + "/out");
  const auto lock = FileLock::Try(root_ + "/out/tokenize.lock");
  ASSERT_NE(lock, nullptr);
  EXPECT_NE(Fault(Options("out")).find("is being written by process"), std::string::npos) << Fault(Options("out"));
}

TEST_F(TokenizeTest, ItsOwnOutputIsNoInput) {
  Put("a.txt", "text");
  TokenizeOptions options = Options("in/tokens");
  Tokenize(options, tokenizer_);
  EXPECT_TRUE(Tokenize(options, tokenizer_).was_complete);
}

// A tokenizer that is slow: lines come all the same.
TEST_F(TokenizeTest, ProgressWhileOnePieceTakesLong) {
  class Slow : public RunTokenizer {
    std::vector<int32_t> Encode(std::string_view text) const override {
      std::this_thread::sleep_for(std::chrono::milliseconds(2600));
      return RunTokenizer::Encode(text);
    }
  };
  Put("a.txt", "text");
  std::ostringstream log;
  Tokenize(Options("out"), Slow(), {.out = &log});
  const std::string text = log.str();
  EXPECT_GE(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(text.find("tokenize: 0 %, 0 B of 4 B"), std::string::npos) << text;
}

}  // namespace
}  // namespace penstock::data
