// src/tokenizer/train_bpe.h
//
// Learns the merges of a byte-level BPE tokenizer from text: the pair of neighbours that occurs most often becomes a
// token, again and again (Sennrich et al. 2016, arXiv:1508.07909, algorithm 1; on bytes as Radford et al. 2019).
// Equally frequent pairs are taken by the ids of their parts, lower first, so the result depends on the texts alone:
// not on their order, nor on the number of threads.
//
//   BpeTrainer trainer(options);
//   trainer.Count(text);                     for every document, from any thread
//   std::string json = trainer.Train();      a tokenizer.json
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::tokenizer {

struct BpeTrainOptions {
  int32_t vocabulary = 32768;  // tokens, with the 256 bytes and the special ones
  int64_t min_frequency = 2;   // pairs that occur less often are not merged
  // They get the first ids; no merge spells one. The first is put between documents (settings_json says so).
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
  std::string pattern = "gpt2";     // "gpt2", "llama3", "qwen2": how text is cut in pieces; or a regular expression
  std::string normalizer = "none";  // or "nfc", "nfkc"; with one, decoding gives the normalized text
};

class BpeTrainer {
 public:
  // UserError for options that do not go together: a vocabulary without room, an unknown normalizer.
  explicit BpeTrainer(BpeTrainOptions options);
  ~BpeTrainer();
  BpeTrainer(const BpeTrainer&) = delete;
  BpeTrainer& operator=(const BpeTrainer&) = delete;

  // May a document be counted in parts? As Tokenizer::CutsAtLines and CutsAtWords.
  bool CutsAtLines() const;
  bool CutsAtWords() const;

  // A document, or a part of one where that is promised. Any thread.
  void Count(std::string_view text);

  struct Result {
    std::string tokenizer_json;
    std::string settings_json;  // a tokenizer_config.json to stand beside it
    int32_t vocabulary = 0;     // less than asked for when no pair is frequent enough
    int64_t merges = 0;
    int64_t distinct_pieces = 0, pieces = 0;
    int64_t last_frequency = 0;  // of the pair merged last
  };
  // Not while Count is called; once. `progress` is called after every merge with the tokens so far and the aim.
  // UserError when the distinct pieces together are longer than 4 GiB.
  Result Train(const std::function<void(int64_t done, int64_t total)>& progress = {});

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::tokenizer
