// src/data/train_tokenizer.h
//
// A tokenizer learned from text files (tokenizer/train_bpe.h), which are read in pieces and counted on several threads.
//
// Result:  a function of the files' documents and of the trainer's options alone: the same for any number of threads
// and
//          any size of pieces.
// Memory:  pieces under way (a mebibyte of text each, a few per thread) and the distinct pieces of the text.
// Errors:  UserError for inputs that are not there or no text, malformed lines (file, line); WorldError when files
//          cannot be read, or change meanwhile.
#pragma once

#include <cstdint>

#include "base/work_progress.h"
#include "data/find_text.h"
#include "tokenizer/train_bpe.h"

namespace penstock::data {

struct TrainTokenizerOptions {
  TextInputs text;
  std::string jsonl_field = "text";
  bool skip_malformed = false;
  std::string document_separator;
  int threads = 1;
  int64_t piece_bytes = int64_t{1} << 20;
  tokenizer::BpeTrainOptions bpe;
};

struct TrainTokenizerResult {
  tokenizer::BpeTrainer::Result trained;
  int64_t files = 0, skipped_files = 0, input_bytes = 0, text_bytes = 0;
  int64_t documents = 0, empty_documents = 0, malformed_lines = 0;
  double count_seconds = 0, merge_seconds = 0;
};

TrainTokenizerResult TrainTokenizer(const TrainTokenizerOptions& options, const ProgressSink& progress = {});

}  // namespace penstock::data
