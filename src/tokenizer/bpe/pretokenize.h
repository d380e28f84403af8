// src/tokenizer/bpe/pretokenize.h
//
// Cuts a text in the pieces within which pairs are merged. Every step takes the pieces of the one before it.
// Threads: immutable after construction.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/regex.h"
#include "tokenizer/bpe/scanner.h"

namespace penstock::tokenizer {

struct Pieces {
  struct Piece {
    std::string_view text;
    bool first = false;  // starts where the whole text starts
  };
  std::vector<Piece> pieces;
  std::deque<std::string> changed;  // owns the texts of pieces that are not parts of the input
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Replaces the pieces by finer ones; order is kept, empty ones are left out.
  virtual void Apply(Pieces& pieces) const = 0;
};

// What becomes of the text that a pattern matches.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// A known pattern, isolated: its matches are the pieces.
std::unique_ptr<PreTokenizer> MakeScan(ScanPattern pattern);
// With `invert` what the expression does not match is what counts as matched.
std::unique_ptr<PreTokenizer> MakeSplit(std::unique_ptr<Regex> regex, SplitBehavior behavior, bool invert);
std::unique_ptr<PreTokenizer> MakeSplit(std::string text, SplitBehavior behavior, bool invert);
// Puts a space before every piece that does not start with one.
std::unique_ptr<PreTokenizer> MakePrefixSpace();
std::unique_ptr<PreTokenizer> MakeDigits(bool individual);
std::unique_ptr<PreTokenizer> MakePunctuation(SplitBehavior behavior);
std::unique_ptr<PreTokenizer> MakeWhitespaceSplit();
enum class PrependScheme { kAlways, kFirst, kNever };
// Spaces become `replacement`, which is put before the text too; then every piece starts with it, when `split`.
std::unique_ptr<PreTokenizer> MakeMetaspace(std::string replacement, PrependScheme scheme, bool split);
std::unique_ptr<PreTokenizer> MakeSequence(std::vector<std::unique_ptr<PreTokenizer>> steps);

}  // namespace penstock::tokenizer
