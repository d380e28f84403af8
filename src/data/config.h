// src/data/config.h
//
// Section [data] of a configuration, and the text data it describes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/batches.h"
#include "data/dataset.h"
#include "tokenizer/tokenizer.h"

namespace penstock::data {

struct DataConfig {
  std::string source = "python-stdlib";
  std::string path;
  std::vector<std::string> include = {"*"};
  std::vector<std::string> exclude;
  int64_t max_bytes = int64_t{256} << 20;
  std::string tokenizer = "bytes";
  int64_t sequence = 128;
  int64_t masked_prefix = 0;
  bool keep_short_window = true;
  double validation_fraction = 0;  // no key yet: nothing evaluates what is held back
  bool shuffle = true;
  bool ragged = false;
  LastBatch last_batch = LastBatch::kWrap;

  void Declare(config::Section& section);
  // Batch sizes and seed belong to the training loop; the rest of the options comes from here.
  BatchOptions MakeBatchOptions(int64_t batch, int64_t micro_batch, uint64_t seed) const;
};

struct TextData {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::shared_ptr<const TextWindows> train;
  std::shared_ptr<const TextWindows> validation;  // null when validation_fraction is 0
  int64_t documents = 0;
  int64_t bytes = 0;
  int64_t skipped_documents = 0;  // because of max_bytes
  double unigram_entropy = 0;     // of the training text, nats per token
};

// Reads the corpus, cuts off the validation part (the last documents that make up the fraction; a single document is
// cut at a line end), and makes windows. Errors as data/corpus.h and TextWindows.
TextData LoadTextData(const DataConfig& config);

}  // namespace penstock::data
