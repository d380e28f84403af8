// src/tokenizer/train/merge_learner.h
//
// The learning of merges from words and how often each occurs. Counts of pairs are kept up to date by looking at the
// words that hold the merged pair only; the pair to take next comes from a heap whose counts may be out of date (too
// high), and are looked up when it is taken.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tokenizer/bpe/model.h"

namespace penstock::tokenizer {

class MergeLearner {
 public:
  // tokens: special ones, then 256 single bytes, which words are made of at first. byte_ids: by byte, its id. reserved:
  // no merge spells one of these; a special token is no outcome of merges.
  MergeLearner(std::vector<std::string> tokens, const int32_t (&byte_ids)[256],
               std::unordered_set<std::string> reserved = {});
  void AddWord(std::string_view bytes, int64_t count);
  // Until there are `vocabulary` tokens, or no pair occurs `min_frequency` times.
  void Learn(int32_t vocabulary, int64_t min_frequency, const std::function<void(int64_t, int64_t)>& progress);

  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<BpeTables::Merge>& merges() const { return merges_; }
  int64_t last_frequency() const { return last_frequency_; }

 private:
  struct Word {
    uint32_t begin = 0, size = 0;  // in symbols_
    int64_t count = 0;
  };
  struct Candidate {
    int64_t count = 0;
    uint64_t pair = 0;
    std::vector<uint32_t> words;  // that may hold it
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  void CountPairs();
  void MergeIn(uint32_t word, int32_t left, int32_t right, int32_t merged);
  void Change(int32_t left, int32_t right, int64_t by, uint32_t word);
  void OfferChanged();

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> ids_;  // of tokens that merges may spell
  std::unordered_set<std::string> reserved_;
  int32_t byte_ids_[256];
  std::vector<int32_t> symbols_;
  std::vector<Word> words_;
  std::unordered_map<uint64_t, int64_t> counts_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> changed_;  // pairs that became more frequent, and where
  std::priority_queue<Candidate> queue_;
  std::vector<BpeTables::Merge> merges_;
  int64_t last_frequency_ = 0;
};

}  // namespace penstock::tokenizer
