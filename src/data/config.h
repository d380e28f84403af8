// src/data/config.h
//
// Section [data] of a configuration, and the text data it describes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/work_progress.h"
#include "data/batches.h"
#include "data/dataset.h"
#include "data/token_windows.h"
#include "tokenizer/tokenizer.h"

namespace penstock::data {

struct DataConfig {
  std::string source = "python-stdlib";
  std::string path;
  std::vector<std::string> include = {"*"};
  std::vector<std::string> exclude;
  std::vector<std::string> sources;  // "path=weight"; only token files
  Packing packing = Packing::kCross;
  int64_t max_bytes = int64_t{256} << 20;
  std::string tokenizer = "bytes";
  int64_t sequence = 128;
  int64_t masked_prefix = 0;
  bool keep_short_window = true;
  double validation_fraction = 0;
  bool shuffle = true;
  bool ragged = false;
  LastBatch last_batch = LastBatch::kWrap;

  void Declare(config::Section& section);
  // Batch sizes and seed belong to the training loop; the rest of the options comes from here.
  BatchOptions MakeBatchOptions(int64_t batch, int64_t micro_batch, uint64_t seed) const;
};

struct TextData {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;  // null when nothing is held back
  int64_t documents = 0;                      // of the training text, and with text sources of the validation part too
  int64_t bytes = 0;                          // of text, or of token files
  int64_t skipped_documents = 0;              // because of max_bytes
  double unigram_entropy = 0;                 // of the training text (sources as they are weighted), nats per token
};

// Text: reads the corpus, cuts off the validation part (the last documents that make up the fraction; a single document
// is cut at a line end), and makes windows. Token files: opens them; windows are read when they are asked for, and the
// validation part is that of `penstock tokenize`. The first time on a file there is a pass over it, with progress.
// Errors as data/corpus.h, data/token_sources.h and the datasets. `seed` (the run's) orders a mixture of sources.
TextData LoadTextData(const DataConfig& config, uint64_t seed = 0, const ProgressSink& sink = {});

// Ids of the tokenizer or of the token files. Errors as tokenizer::LoadTokenizer, data/token_sources.h.
int32_t VocabularyOf(const DataConfig& config);

}  // namespace penstock::data
