#include "data/tokenize.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
    // With the process: the same test may run twice on a machine.
    root_ = testing::TempDir() + "/penstock_tokenize_" + std::to_string(::getpid()) + "_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
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
  EXPECT_EQ(file.documents(), 1 + 3000 + 40 - result.empty_documents);
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

// A damaged first entry of a later part's ends used to end every run as a fault of ours.
TEST_F(TokenizeTest, DamagedEndsOfAPartAreMadeAgain) {
  PutMixture(600);
  Tokenize(Options("whole"), tokenizer_);
  TokenizeOptions options = Options("out");
  options.part_bytes = 8'000;
  options.piece_bytes = 4'000;
  FaultyFileSystem faulty;
  faulty.set_fault({});
  Tokenize(options, tokenizer_, {}, faulty);
  faulty.set_fault({.operation = faulty.operations() - 12, .crash = true});
  fs::remove_all(options.out);
  EXPECT_THROW(Tokenize(options, tokenizer_, {}, faulty), WorldError);
  fs::copy(options.out, root_ + "/kept", fs::copy_options::recursive);
  const std::vector<std::string> damages = {std::string("\1\0\0\0\0\0\0\0", 8), std::string(8, '\0'),
                                            std::string(8, '\xff')};
  int damaged = 0;
  for (const auto& entry : fs::directory_iterator(root_ + "/kept/tokenize.parts")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with("ends") || name.starts_with("part-000000") || entry.file_size() == 0) continue;
    for (const std::string& damage : damages) {
      fs::remove_all(options.out);
      fs::copy(root_ + "/kept", options.out, fs::copy_options::recursive);
      std::string bytes = ReadFile(entry.path().string());
      std::ofstream(options.out + "/tokenize.parts/" + name, std::ios::binary) << bytes.replace(0, 8, damage);
      try {
        Tokenize(options, tokenizer_);
        ADD_FAILURE() << name << " was taken";
      } catch (const WorldError& error) {
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      }
      ASSERT_NO_THROW(Tokenize(options, tokenizer_));
      EXPECT_EQ(Files("out"), Files("whole")) << name;
      ++damaged;
    }
  }
  EXPECT_GT(damaged, 9);
}

// Records of parts with any one byte changed: the part counts as not finished, or nothing is different.
TEST_F(TokenizeTest, ADamagedRecordIsNoPart) {
  PutMixture(600);
  Tokenize(Options("whole"), tokenizer_);
  TokenizeOptions options = Options("out");
  options.part_bytes = 30'000;
  options.piece_bytes = 10'000;
  FaultyFileSystem faulty;
  faulty.set_fault({});
  Tokenize(options, tokenizer_, {}, faulty);
  faulty.set_fault({.operation = faulty.operations() - 12, .crash = true});
  fs::remove_all(options.out);
  EXPECT_THROW(Tokenize(options, tokenizer_, {}, faulty), WorldError);
  fs::copy(options.out, root_ + "/kept", fs::copy_options::recursive);
  const std::string record = options.out + "/tokenize.parts/part-000000.json";
  const std::string bytes = ReadFile(record);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    fs::remove_all(options.out);
    fs::copy(root_ + "/kept", options.out, fs::copy_options::recursive);
    std::string damaged = bytes;
    damaged[at] = damaged[at] == '1' ? '2' : '1';
    std::ofstream(record, std::ios::binary) << damaged;
    ASSERT_NO_THROW(Tokenize(options, tokenizer_)) << damaged;
    ASSERT_EQ(Files("out"), Files("whole")) << damaged;
  }
}

// `tokenize --out own --tokenizer own/tokenizer --overwrite` has its tokenizer nowhere else.
TEST_F(TokenizeTest, WhatIsOverwrittenStaysUntilTheNewIsThere) {
  PutMixture(300);
  TokenizeOptions options = Options("out");
  Tokenize(options, tokenizer_);
  std::ofstream(options.out + "/tokenizer/vocab.json") << "of another tokenizer";
  const auto before = Files("out");
  options.validation = 0.5;
  options.overwrite = true;
  options.part_bytes = 10'000;
  options.piece_bytes = 5'000;
  Put("zzz.jsonl", "no JSON\n");
  EXPECT_NE(Fault(options).find("zzz.jsonl' line 1"), std::string::npos);
  auto now = Files("out");
  for (const auto& [name, content] : before) EXPECT_EQ(now[name], content) << name;
  fs::remove(root_ + "/in/zzz.jsonl");
  Tokenize(options, tokenizer_);
  TokenizeOptions fresh = options;
  fresh.out = root_ + "/fresh";
  Tokenize(fresh, tokenizer_);
  EXPECT_EQ(Files("out"), Files("fresh"));
  fresh.validation = 0;
  fresh.out = root_ + "/none";
  Tokenize(fresh, tokenizer_);
  options.validation = 0;
  Tokenize(options, tokenizer_);
  EXPECT_EQ(Files("out"), Files("none")) << "validation.tokens is of the run before";
}

// Stopped anywhere while it replaces the results of another run: the tokenizer is there, the folder never passes for
// complete with files of two runs, and the same command ends with the files of an undisturbed run.
TEST_F(TokenizeTest, OverwritingGoesOnAfterAnyFailure) {
  PutMixture(400);
  TokenizeOptions old = Options("old");
  Tokenize(old, tokenizer_);
  TokenizeOptions options = Options("whole");
  options.validation = 0.5;
  options.part_bytes = 20'000;
  options.piece_bytes = 10'000;
  Tokenize(options, tokenizer_);
  const auto expected = Files("whole");
  options.out = old.out = root_ + "/out";
  options.overwrite = true;
  const auto start = [&] {
    fs::remove_all(options.out);
    fs::copy(root_ + "/old", options.out, fs::copy_options::recursive);
  };
  FaultyFileSystem faulty;
  start();
  faulty.set_fault({});
  Tokenize(options, tokenizer_, {}, faulty);
  const int64_t operations = faulty.operations();
  int kept = 0, replaced = 0;
  for (const bool crash : {false, true}) {
    for (int64_t k = crash ? 2 : 1; k <= operations; k += k + 30 > operations ? 2 : operations / 7 + 1) {
      start();
      faulty.set_fault({.operation = k, .written = 0.3, .crash = crash});
      EXPECT_THROW(Tokenize(options, tokenizer_, {}, faulty), WorldError) << k;
      ASSERT_EQ(ReadFile(options.out + "/tokenizer/tokenizer.json"), "{}") << k;
      fs::copy(options.out, root_ + "/copy", fs::copy_options::recursive);
      try {
        EXPECT_TRUE(Tokenize(old, tokenizer_).was_complete);
        EXPECT_EQ(ReadFile(options.out + "/train.tokens"), ReadFile(root_ + "/old/train.tokens")) << k;
        EXPECT_EQ(ReadFile(options.out + "/validation.tokens"), ReadFile(root_ + "/old/validation.tokens")) << k;
        ++kept;
      } catch (const UserError&) {
        ++replaced;
      }
      fs::remove_all(options.out);
      fs::rename(root_ + "/copy", options.out);
      Tokenize(options, tokenizer_);
      ASSERT_EQ(Files("out"), expected) << k << crash;
    }
  }
  EXPECT_GT(kept, 5);
  EXPECT_GT(replaced, 5);
}

TEST_F(TokenizeTest, CompleteIsWhatHasItsFiles) {
  PutMixture(200);
  Tokenize(Options("out"), tokenizer_);
  const auto before = Files("out");
  for (const std::string name : {"train.tokens", "validation.tokens"}) {
    fs::rename(root_ + "/out/" + name, root_ + "/kept");
    EXPECT_NE(Fault(Options("out")).find(name + "' is not there"), std::string::npos) << Fault(Options("out"));
    std::ofstream(root_ + "/out/" + name) << ReadFile(root_ + "/kept").substr(0, 500);
    EXPECT_NE(Fault(Options("out")).find("--overwrite"), std::string::npos) << Fault(Options("out"));
    // A token file, but of something else.
    WriteTokenFile(root_ + "/out/" + name,
                   {.tokenizer = "", .fingerprint = tokenizer_.Fingerprint(), .vocabulary = 50'000}, {{1, 2}}, true);
    EXPECT_NE(Fault(Options("out")).find("--overwrite"), std::string::npos) << Fault(Options("out"));
    TokenizeOptions again = Options("out");
    again.overwrite = true;
    EXPECT_FALSE(Tokenize(again, tokenizer_).was_complete);
    EXPECT_EQ(Files("out"), before);
    fs::remove(root_ + "/kept");
  }
  fs::remove_all(root_ + "/out/tokenizer");
  EXPECT_TRUE(Tokenize(Options("out"), tokenizer_).was_complete);
  EXPECT_EQ(Files("out"), before) << "the tokenizer's files are written again";
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
  // Nothing came of that one, so another may take its place.
  TokenizeOptions skip = Options("out3");
  skip.skip_malformed = true;
  const TokenizeResult result = Tokenize(skip, tokenizer_);
  EXPECT_EQ(result.malformed_lines, 1);
  EXPECT_EQ(result.documents[0] + result.documents[1], 1);
  fs::create_directories(root_ + "/out4");
  std::ofstream(root_ + "/out4/train.tokens") << "mine";
  EXPECT_NE(Fault(Options("out4")).find("is not overwritten"), std::string::npos);
  EXPECT_EQ(ReadFile(root_ + "/out4/train.tokens"), "mine");
}

TEST_F(TokenizeTest, EmptyDocumentsOfAnyKindAreCounted) {
  Put("a.txt", "");
  Put("b.txt", "one\n<|end|>\n<|end|>\ntwo");
  Put("c.jsonl", "{\"text\": \"\"}\n{\"text\": \"three\"}\n");
  Put("z.txt", "");
  TokenizeOptions options = Options("out");
  options.document_separator = "<|end|>";
  const TokenizeResult result = Tokenize(options, tokenizer_);
  EXPECT_EQ(result.documents[0] + result.documents[1], 3);
  EXPECT_EQ(result.empty_documents, 4);
  EXPECT_EQ(result.files, 4);
  for (const char* name : {"a.txt", "b.txt", "c.jsonl"}) Put(name, "");
  EXPECT_NE(Fault(Options("none")).find("the files are empty"), std::string::npos) << Fault(Options("none"));
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
