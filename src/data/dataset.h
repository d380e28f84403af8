// src/data/dataset.h
//
// Samples by index. Immutable after construction; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/token_stream.h"

namespace penstock::data {

inline constexpr int32_t kIgnoredLabel = -100;  // no loss at this position

struct Sample {
  std::vector<int32_t> tokens;
  std::vector<int32_t> labels;  // as long as tokens; kIgnoredLabel or the token to predict at this position
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  // True: i is the place in the run and has no bound; the dataset has an order of its own (a mixture of sources), and
  // size() only says what an epoch is called.
  virtual bool endless() const { return false; }
  // All of them for 0 <= i < size().
  virtual Sample Get(int64_t i) const = 0;
  // Without building the sample: its length, and how many of its labels are not ignored.
  virtual int64_t Length(int64_t i) const = 0;
  virtual int64_t ValidTokens(int64_t i) const = 0;
  // Of contents and options: equal fingerprints mean equal samples. A run is resumed on the same data only.
  virtual std::string Fingerprint() const = 0;
};

// A stream cut in windows of `sequence` tokens that do not overlap; the label of a token is the next token of the
// stream. n tokens give ceil((n - 1) / sequence) windows; the last may be shorter, or is left out.
struct WindowOptions {
  int64_t sequence = 1024;
  int64_t masked_prefix = 0;  // labels of the first so many tokens of each window are ignored
  bool keep_short_window = true;
};
class TextWindows : public Dataset {
 public:
  // UserError when the stream is too short for one window (of `sequence` tokens, or of masked_prefix + 1 when short
  // windows are kept).
  TextWindows(TokenStream stream, const WindowOptions& options);
  int64_t size() const override { return size_; }
  Sample Get(int64_t i) const override;
  int64_t Length(int64_t i) const override;
  int64_t ValidTokens(int64_t i) const override;
  std::string Fingerprint() const override;
  const TokenStream& stream() const { return stream_; }

 private:
  TokenStream stream_;
  WindowOptions options_;
  int64_t size_;
};

// Given samples, for tests and small hand-made sets.
class ListDataset : public Dataset {
 public:
  explicit ListDataset(std::vector<Sample> samples);
  // Sample i has lengths[i] tokens with ids drawn from [0, vocabulary) by (seed, i), and the next token as label; the
  // last label is ignored when `ignore_last`.
  static ListDataset Random(const std::vector<int64_t>& lengths, int32_t vocabulary, uint64_t seed,
                            bool ignore_last = false);
  // Sample i has lengths[i] tokens, all with the id i, and so are its labels: whoever mixes up samples is found out.
  static ListDataset Numbered(const std::vector<int64_t>& lengths);

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  Sample Get(int64_t i) const override { return samples_.at(static_cast<size_t>(i)); }
  int64_t Length(int64_t i) const override;
  int64_t ValidTokens(int64_t i) const override;
  std::string Fingerprint() const override;

 private:
  std::vector<Sample> samples_;
};

}  // namespace penstock::data
