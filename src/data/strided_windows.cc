#include "data/strided_windows.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::data {

StridedWindows::StridedWindows(TokenStream stream, int64_t window, int64_t stride)
    : stream_(std::move(stream)), window_(window), stride_(stride) {
  PENSTOCK_CHECK(stride >= 1 && stride <= window, "stride {} of windows of {}", stride, window);
  const int64_t targets = stream_.size() - 1;
  if (targets < 1) throw UserError("the text has {} tokens; two are needed for one to be predicted", stream_.size());
  // The first window predicts `window` targets, every further one up to `stride` more.
  size_ = 1 + (std::max<int64_t>(targets - window, 0) + stride - 1) / stride;
}

int64_t StridedWindows::Predicted(int64_t i) const { return i == 0 ? 0 : (i - 1) * stride_ + window_; }

int64_t StridedWindows::Length(int64_t i) const { return std::min(window_, stream_.size() - 1 - i * stride_); }

int64_t StridedWindows::ValidTokens(int64_t i) const { return i * stride_ + Length(i) - Predicted(i); }

Sample StridedWindows::Get(int64_t i) const {
  PENSTOCK_CHECK(i >= 0 && i < size_, "window {} of {}", i, size_);
  const int64_t first = i * stride_, length = Length(i), predicted = Predicted(i);
  Sample sample;
  for (int64_t t = first; t < first + length; ++t) {
    sample.tokens.push_back(stream_[t]);
    sample.labels.push_back(t + 1 <= predicted ? kIgnoredLabel : stream_[t + 1]);
  }
  return sample;
}

std::string StridedWindows::Fingerprint() const {
  const Hash128 text = stream_.Fingerprint();
  return Hasher()
      .Update("strided windows")
      .Update(text.high)
      .Update(text.low)
      .Update(static_cast<uint64_t>(window_))
      .Update(static_cast<uint64_t>(stride_))
      .Digest()
      .Hex();
}

}  // namespace penstock::data
