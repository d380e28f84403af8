// src/data/strided_windows.h
//
// A stream of tokens for evaluation: every token but the first is predicted once, with as much before it as the window
// and the stride give. Window k holds the tokens [k stride, k stride + window); what earlier windows have predicted
// does not count again. stride = window: windows that do not overlap, as in training. A smaller stride gives each token
// at least window - stride tokens before it (but the first ones of the stream), and costs window / stride as much.
// Immutable; any thread.
#pragma once

#include "data/dataset.h"
#include "data/token_stream.h"

namespace penstock::data {

class StridedWindows : public Dataset {
 public:
  // 1 <= stride <= window. UserError when the stream has less than two tokens.
  StridedWindows(TokenStream stream, int64_t window, int64_t stride);
  int64_t size() const override { return size_; }
  Sample Get(int64_t i) const override;
  int64_t Length(int64_t i) const override;
  int64_t ValidTokens(int64_t i) const override;
  std::string Fingerprint() const override;
  const TokenStream& stream() const { return stream_; }

 private:
  int64_t Predicted(int64_t i) const;  // targets before window i that are predicted by then: [1, this]

  TokenStream stream_;
  int64_t window_, stride_, size_;
};

}  // namespace penstock::data
