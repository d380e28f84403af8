// src/data/tokenize.h
//
// Text files to token files (data/token_file.h), once, so that training need not encode: OUT/train.tokens,
// OUT/validation.tokens when a part is held back, the tokenizer's files in OUT/tokenizer/, and OUT/tokenize.json, which
// says what was done and is written last.
//
// Result:      a function of the files and of Choices alone: the same for any number of threads and parts, and for any
//              interruption. While it works, OUT/tokenize.parts/ holds finished parts; the same command run again after
//              a kill goes on after the last of them.
// Memory:      does not grow with files: pieces under way (a mebibyte of text each, a few per thread).
// Validation:  document i of file NAME is held back when XXH3-128(seed, NAME, i) / 2^128 is below the fraction (seed
// and
//              i as eight bytes, least significant first; NAME as found in the folder; i counted in the file, of .jsonl
//              files over all lines). The split does not change when other files come or go.
// Errors:      UserError for inputs that are not there or no text, malformed lines (file, line), an OUT that holds
//              something else; WorldError when files cannot be read or written, or change meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/work_progress.h"
#include "tokenizer/tokenizer.h"

namespace penstock::data {

inline constexpr const char* kTrainTokens = "train.tokens";
inline constexpr const char* kValidationTokens = "validation.tokens";
inline constexpr const char* kTokenizerFolder = "tokenizer";
inline constexpr const char* kTokenizeSummary = "tokenize.json";
inline constexpr const char* kTokenizeParts = "tokenize.parts";

struct TokenizeOptions {
  std::vector<std::string> inputs;  // files and folders, in this order; files of a folder by name
  std::string out;
  bool overwrite = false;  // results of another run in `out`
  int threads = 1;
  int64_t part_bytes = int64_t{64} << 20;  // of text: at most this much is done again after a kill

  int64_t piece_bytes = int64_t{1} << 20;  // of text, handed to a thread at once

  // Choices: what the result depends on.
  std::vector<std::string> include = {"*"};  // of the files of folders
  std::vector<std::string> exclude;
  std::string jsonl_field = "text";
  bool skip_malformed = false;  // lines of .jsonl files without that field are left out (a few are named) and counted
  std::string document_separator;  // a line of its own; empty: none
  double validation = 0;           // fraction of the documents
  uint64_t validation_seed = 0;
};

struct TokenizeResult {
  // [train, validation]
  std::array<int64_t, 2> documents{};
  std::array<int64_t, 2> tokens{};
  int64_t files = 0, skipped_files = 0, input_bytes = 0, text_bytes = 0, empty_documents = 0;
  int64_t malformed_lines = 0;
  int64_t resumed_bytes = 0;  // of the input: done by runs before this one
  bool was_complete = false;  // nothing was left to do
};

TokenizeResult Tokenize(const TokenizeOptions& options, const tokenizer::Tokenizer& tokenizer,
                        const ProgressSink& progress = {}, FileSystem& files = FileSystem::Real());

}  // namespace penstock::data
