// src/data/text_pieces.h
//
// The documents of many files, read in pieces of about a mebibyte, so that memory does not grow with files.
//
// Documents: a file ending in .jsonl or .ndjson has one per line; every other file is one, or several between lines
// that are the separator. A document without text (an empty file is one) is left out and counted.
// Changes:   WorldError when a file has another size or time of change than when it was found, at its first and its
// last
//            piece.
// Cuts: a long document is cut where its parts have the ids of the whole (SafeCut). When there is no such place within
// 256 MiB, or the tokenizer promises none and the document is longer, that is a UserError which names it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/corpus.h"

namespace penstock::data {

// The last place of `text` after a '\n' that stands alone: between two characters (of valid UTF-8) that are no white
// space. 0 when there is none. See Tokenizer::CutsAtLines.
size_t SafeCut(std::string_view text);
// The last place between an ASCII letter and a space that another one follows; 0. See Tokenizer::CutsAtWords.
size_t SafeWordCut(std::string_view text);

struct TextFile : FoundFile {
  bool named = false;  // by the user, not found in a folder: not skipped when it is binary
};
bool IsJsonLines(std::string_view name);

// Where reading stands; what a resumed run goes on from.
struct TextPosition {
  int64_t file = 0;
  int64_t offset = 0;         // in the file
  int64_t document = 0;       // in the file: that goes on, or that is next
  int64_t line = 0;           // lines of a .jsonl file before it
  bool inside = false;        // part of the document was read
  int64_t input_bytes = 0;    // read or skipped, of all files
  int64_t skipped_files = 0;  // not text
};

struct TextPiece {
  // Part of a document, or lines of a .jsonl file.
  struct Segment {
    size_t begin = 0, end = 0;  // in text
    int64_t file = 0;
    int64_t document = 0;  // its index in the file; of .jsonl: the line, from 0
    bool json = false;
    bool starts = false, ends = false;  // the document; of .jsonl: both
  };
  std::string text;
  std::vector<Segment> segments;
  int64_t empty_documents = 0;  // before `after`; not of .jsonl files, whose lines are not looked at here
  TextPosition after;
};

// One thread.
class TextPieces {
 public:
  struct Options {
    std::string separator = {};                         // empty: a file is one document
    bool cuts_at_lines = false, cuts_at_words = false;  // of the tokenizer
    size_t piece_bytes = 1 << 20;
    size_t longest = size_t{256} << 20;
  };
  TextPieces(std::vector<TextFile> files, Options options, TextPosition start = {});
  const std::vector<TextFile>& files() const { return files_; }
  // Empty at the end; where() then stands after the last file.
  std::optional<TextPiece> Next();
  const TextPosition& where() const { return at_; }

 private:
  bool OpenFile();  // false: it is skipped
  void Fill(size_t bytes);
  std::string_view Rest() const { return std::string_view(buffer_).substr(begin_); }
  bool AtEnd() const;  // the buffer holds the file's last byte
  void Take(TextPiece& piece, size_t bytes, bool ends);
  void Skip(size_t bytes);
  void CheckUnchanged() const;
  void CloseFile();
  void AddText(TextPiece& piece);
  void AddLines(TextPiece& piece);
  bool FindSeparator(size_t* begin, size_t* end) const;

  std::vector<TextFile> files_;
  Options options_;
  TextPosition at_;
  std::unique_ptr<ReadableFile> file_;
  std::string buffer_;  // from begin_ on: the file from at_.offset on
  size_t begin_ = 0;
};

}  // namespace penstock::data
