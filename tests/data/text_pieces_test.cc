#include "data/text_pieces.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "data/tokenize/encode_piece.h"

namespace penstock::data {
namespace {

TEST(SafeCut, OnlyAtLineEndsBetweenTwoCharactersThatAreNoSpace) {
  EXPECT_EQ(SafeCut("one\ntwo"), 4u);
  EXPECT_EQ(SafeCut("one\ntwo\nthree"), 8u);
  EXPECT_EQ(SafeCut("one\ntwo\n"), 4u);  // what follows the last one is not known
  EXPECT_EQ(SafeCut("one\n\ntwo"), 0u);
  EXPECT_EQ(SafeCut("one\n two"), 0u);
  EXPECT_EQ(SafeCut("one \ntwo"), 0u);
  EXPECT_EQ(SafeCut("one\r\ntwo"), 0u);
  EXPECT_EQ(SafeCut("\ntwo"), 0u);
  EXPECT_EQ(SafeCut("one"), 0u);
  EXPECT_EQ(SafeCut(""), 0u);
  EXPECT_EQ(SafeCut("caf\xc3\xa9\n\xe6\xbc\xa2"), 6u);
  EXPECT_EQ(SafeCut("one\n\xc2\xa0two"), 0u);      // no-break space
  EXPECT_EQ(SafeCut("one\xe3\x80\x80\ntwo"), 0u);  // ideographic space
  EXPECT_EQ(SafeCut("one\n\xe6\xbc"), 0u);         // a character that is cut off
  EXPECT_EQ(SafeCut("one\xff\ntwo"), 0u);
}

TEST(SafeCut, OrBetweenTwoWords) {
  EXPECT_EQ(SafeWordCut("one two three"), 7u);
  EXPECT_EQ(SafeWordCut("one two "), 3u);
  EXPECT_EQ(SafeWordCut("one  two 3 4 five. six \xc3\xa9"), 0u);
  EXPECT_EQ(SafeWordCut(" a"), 0u);
  EXPECT_EQ(SafeWordCut(""), 0u);
}

class PiecesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/penstock_pieces_" + std::to_string(::getpid()) + "_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    files_.push_back(
        {{name, folder_ + "/" + name, static_cast<int64_t>(text.size()), TimeOfChange(folder_ + "/" + name)}, false});
  }
  // The documents put together again; pieces are read from `start` on.
  std::vector<std::string> Documents(const TextPieces::Options& options, std::vector<TextPosition>* positions = nullptr,
                                     TextPosition start = {}) {
    TextPieces pieces(files_, options, start);
    std::vector<std::string> documents;
    empty_ = 0;
    bool open = start.inside;
    if (open) documents.emplace_back();
    while (const auto piece = pieces.Next()) {
      for (const TextPiece::Segment& segment : piece->segments) {
        if (segment.starts) documents.emplace_back();
        EXPECT_NE(segment.starts, open);
        documents.back() += piece->text.substr(segment.begin, segment.end - segment.begin);
        open = !segment.ends;
      }
      empty_ += piece->empty_documents;
      if (positions != nullptr) positions->push_back(piece->after);
    }
    EXPECT_FALSE(open);
    int64_t bytes = 0;
    for (const TextFile& file : files_) bytes += file.bytes;
    EXPECT_EQ(pieces.where().input_bytes, bytes);
    return documents;
  }

  std::string folder_;
  std::vector<TextFile> files_;
  int64_t empty_ = 0;
};

TEST_F(PiecesTest, SeparatorsAreLinesOfTheirOwn) {
  Put("a.txt", "one\n<|end|>\ntwo <|end|>\n<|end|> three\n<|end|>\r\n<|end|>\nfour");
  Put("b.txt", "<|end|>\nfive\n<|end|>");
  Put("c.txt", "six\n<|end|");
  const std::vector<std::string> expected = {"one\n", "two <|end|>\n<|end|> three\n", "four", "five\n", "six\n<|end|"};
  for (const size_t piece : {1, 2, 3, 5, 8, 13, 1000})
    for (const bool cuts : {false, true})
      for (const bool words : {false, true})
        EXPECT_EQ(
            Documents({.separator = "<|end|>", .cuts_at_lines = cuts, .cuts_at_words = words, .piece_bytes = piece}),
            expected)
            << piece << cuts << words;
  EXPECT_EQ(Documents({}).size(), 3u);
}

// Whatever the size of pieces, the documents are the same; and reading goes on from any position between two pieces.
TEST_F(PiecesTest, AnySizeAndAnyStartGiveTheSameDocuments) {
  std::mt19937_64 rng(3);
  for (int f = 0; f < 6; ++f) {
    std::string text;
    for (size_t lines = 1 + rng() % 60; lines > 0; --lines) {
      text += std::string(rng() % 3, ' ');
      for (size_t words = rng() % 5; words > 0; --words) text += words % 2 == 0 ? "caf\xc3\xa9 " : "word x";
      text += rng() % 9 == 0 ? "\n--\n" : rng() % 5 == 0 ? "\n\n" : "\n";
    }
    Put("f" + std::to_string(f), text);
  }
  const std::vector<std::string> whole = Documents({.separator = "--"});
  EXPECT_GT(whole.size(), 10u);
  for (const size_t piece : {1, 7, 40, 333, 4000}) {
    const TextPieces::Options options{
        .separator = "--", .cuts_at_lines = true, .cuts_at_words = piece != 333, .piece_bytes = piece};
    std::vector<TextPosition> positions;
    EXPECT_EQ(Documents(options, &positions), whole);
    if (piece != 40) continue;
    EXPECT_GT(positions.size(), 15u);
    for (const TextPosition& start : positions) {
      const std::vector<std::string> rest = Documents(options, nullptr, start);
      ASSERT_LE(rest.size(), whole.size());
      const size_t first = whole.size() - rest.size();
      for (size_t d = start.inside ? 1 : 0; d < rest.size(); ++d) EXPECT_EQ(rest[d], whole[first + d]);
      EXPECT_TRUE(!start.inside || whole[first].ends_with(rest[0]));
    }
  }
}

TEST_F(PiecesTest, DocumentsWithoutTextAreCounted) {
  Put("0.txt", "");
  Put("a.txt", "--\n--\none\n--\n--\ntwo\n--\n");
  Put("b.txt", "--");
  Put("c.jsonl", "");  // no lines, no documents
  Put("d.txt", "three");
  Put("e.txt", "");
  for (const size_t piece : {1, 4, 1000}) {
    EXPECT_EQ(Documents({.separator = "--", .piece_bytes = piece}).size(), 4u) << "with the lines of c.jsonl";
    EXPECT_EQ(empty_, 6) << piece;
  }
}

// A file of the same size, and one that changes between two pieces of it.
TEST_F(PiecesTest, AFileThatChangesMeanwhileIsAnError) {
  std::string text;
  while (text.size() < 200'000) text += "one two three four five six ";  // more than is read to see what it is
  Put("a.txt", text);
  const auto time = std::filesystem::last_write_time(folder_ + "/a.txt");
  const auto set = [&](int seconds) {
    std::filesystem::last_write_time(folder_ + "/a.txt", time + std::chrono::seconds(seconds));
  };
  set(1);
  EXPECT_THROW(Documents({}), WorldError) << "changed since it was found";
  set(0);
  EXPECT_EQ(Documents({}).size(), 1u);
  const TextPieces::Options options{.cuts_at_words = true, .piece_bytes = 1000};
  TextPieces pieces(files_, options);
  ASSERT_TRUE(pieces.Next().has_value());
  set(2);
  EXPECT_THROW(while (pieces.Next()){}, WorldError);
  set(0);
  std::filesystem::resize_file(folder_ + "/a.txt", text.size() - 1);
  set(0);
  EXPECT_THROW(Documents({}), WorldError);
}

TEST_F(PiecesTest, BinaryFilesAreLeftOutOrRefused) {
  Put("a.txt", "text");
  Put("b.bin", std::string("x\0y", 3));
  Put("c.txt", "more");
  EXPECT_EQ(Documents({}), (std::vector<std::string>{"text", "more"}));
  files_[1].named = true;
  EXPECT_THROW(Documents({}), UserError);
}

TEST_F(PiecesTest, ADocumentWithoutAPlaceToCutIsNamed) {
  Put("long.txt", std::string(200'000, 'x'));
  EXPECT_EQ(Documents({.piece_bytes = 100, .longest = 200'000}).size(), 1u);
  try {
    Documents({.cuts_at_lines = true, .piece_bytes = 100, .longest = 100'000});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("long.txt': document 1 has 97.7 KiB from byte 0"), std::string::npos)
        << error.what();
  }
}

TEST(JsonLines, TextOfLine) {
  EXPECT_EQ(TextOfLine(R"({"id": 3, "text": "a\n\u00e9", "meta": {"text": "no"}})", "text", "f line 1"), "a\n\xc3\xa9");
  EXPECT_EQ(TextOfLine(R"({"text": "a\ud800b\udc00\\ud800\ud83d\ude00\ud83d"})", "text", "f line 1"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd\\ud800\xf0\x9f\x98\x80\xef\xbf\xbd");
  EXPECT_EQ(TextOfLine(R"({"text": {"text": 1}, "body": "yes"})", "body", "f line 1"), "yes");
  std::string deep = R"({"text": "x", "deep": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_EQ(TextOfLine(deep, "text", "f line 1"), "x");
  const auto fault = [](const std::string& line) -> std::string {
    try {
      TextOfLine(line, "text", "'f' line 7");
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(fault(R"({"text": "a)").find("'f' line 7: no JSON"), std::string::npos);
  EXPECT_NE(fault(R"(["text"])").find("no JSON object"), std::string::npos);
  EXPECT_NE(fault(R"({"txt": "a"})").find("is not there; --jsonl-field"), std::string::npos);
  EXPECT_NE(fault(R"({"text": 7})").find("is no text"), std::string::npos);
  EXPECT_NE(fault(R"({"text": ["a"]})").find("is no text"), std::string::npos);
  EXPECT_NE(fault("{\"text\": \"\xff\"}").find("no JSON"), std::string::npos);
}

}  // namespace
}  // namespace penstock::data
