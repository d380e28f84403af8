#include "tokenizer/train/merge_learner.h"

#include <algorithm>

namespace penstock::tokenizer {
namespace {

uint64_t PairOf(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

MergeLearner::MergeLearner(std::vector<std::string> tokens, const int32_t (&byte_ids)[256],
                           std::unordered_set<std::string> reserved)
    : tokens_(std::move(tokens)), reserved_(std::move(reserved)) {
  std::copy(std::begin(byte_ids), std::end(byte_ids), byte_ids_);
}

void MergeLearner::AddWord(std::string_view bytes, int64_t count) {
  words_.push_back({static_cast<uint32_t>(symbols_.size()), static_cast<uint32_t>(bytes.size()), count});
  for (const char b : bytes) symbols_.push_back(byte_ids_[static_cast<unsigned char>(b)]);
}

void MergeLearner::Change(int32_t left, int32_t right, int64_t by, uint32_t word) {
  const uint64_t pair = PairOf(left, right);
  counts_[pair] += by;
  if (by <= 0) return;
  std::vector<uint32_t>& words = changed_[pair];
  if (words.empty() || words.back() != word) words.push_back(word);
}

void MergeLearner::CountPairs() {
  for (uint32_t w = 0; w < words_.size(); ++w)
    for (uint32_t i = words_[w].begin; i + 1 < words_[w].begin + words_[w].size; ++i)
      Change(symbols_[i], symbols_[i + 1], words_[w].count, w);
  OfferChanged();
}

void MergeLearner::OfferChanged() {
  for (auto& [pair, words] : changed_)
    if (const int64_t count = counts_[pair]; count > 0) queue_.push({count, pair, std::move(words)});
  changed_.clear();
}

void MergeLearner::MergeIn(uint32_t w, int32_t left, int32_t right, int32_t merged) {
  Word& word = words_[w];
  int32_t* symbols = symbols_.data() + word.begin;
  uint32_t to = 0;
  for (uint32_t from = 0; from < word.size; ++to) {
    if (from + 1 == word.size || symbols[from] != left || symbols[from + 1] != right) {
      symbols[to] = symbols[from++];
      continue;
    }
    if (to > 0) {
      Change(symbols[to - 1], left, -word.count, w);
      Change(symbols[to - 1], merged, word.count, w);
    }
    from += 2;
    if (from < word.size) {
      Change(right, symbols[from], -word.count, w);
      Change(merged, symbols[from], word.count, w);
    }
    symbols[to] = merged;
  }
  word.size = to;
}

void MergeLearner::Learn(int32_t vocabulary, int64_t min_frequency,
                         const std::function<void(int64_t, int64_t)>& progress) {
  CountPairs();
  while (static_cast<int32_t>(tokens_.size()) < vocabulary && !queue_.empty()) {
    // The top is moved out; nothing compares it before it is gone from the heap.
    Candidate top = std::move(const_cast<Candidate&>(queue_.top()));
    queue_.pop();
    if (const int64_t count = counts_[top.pair]; count != top.count) {
      top.count = count;
      if (count > 0) queue_.push(std::move(top));
      continue;
    }
    if (top.count < std::max<int64_t>(1, min_frequency)) break;
    const auto left = static_cast<int32_t>(top.pair >> 32), right = static_cast<int32_t>(top.pair & 0xFFFFFFFF);
    const std::string text = tokens_[static_cast<size_t>(left)] + tokens_[static_cast<size_t>(right)];
    if (reserved_.contains(text)) continue;
    // Two pairs may spell the same token.
    const auto [found, added] = ids_.emplace(text, static_cast<int32_t>(tokens_.size()));
    if (added) tokens_.push_back(text);
    merges_.push_back({left, right, found->second});
    last_frequency_ = top.count;
    for (const uint32_t w : top.words) MergeIn(w, left, right, found->second);
    OfferChanged();
    if (progress) progress(static_cast<int64_t>(tokens_.size()), vocabulary);
  }
}

}  // namespace penstock::tokenizer
