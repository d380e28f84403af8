#include "data/dataset.h"

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"

namespace penstock::data {

TextWindows::TextWindows(TokenStream stream, const WindowOptions& options)
    : stream_(std::move(stream)), options_(options) {
  PENSTOCK_CHECK(options.sequence >= 1 && options.masked_prefix >= 0 && options.masked_prefix < options.sequence,
                 "sequence {}, masked prefix {}", options.sequence, options.masked_prefix);
  const int64_t predictable = std::max<int64_t>(stream_.size() - 1, 0);
  const int64_t rest = predictable % options_.sequence;
  size_ = predictable / options_.sequence;
  // A short window whose labels are all masked would be a sample without a loss.
  if (options_.keep_short_window && rest > options_.masked_prefix) ++size_;
  if (size_ == 0)
    throw UserError(
        "the text is too short: {} tokens do not fill one window of {} and the token after it; give more "
        "text or a smaller data.sequence",
        stream_.size(), options_.keep_short_window ? options_.masked_prefix + 1 : options_.sequence);
}

int64_t TextWindows::Length(int64_t i) const {
  return std::min(options_.sequence, stream_.size() - 1 - i * options_.sequence);
}

int64_t TextWindows::ValidTokens(int64_t i) const { return Length(i) - options_.masked_prefix; }

Sample TextWindows::Get(int64_t i) const {
  PENSTOCK_CHECK(i >= 0 && i < size_, "sample {} of {}", i, size_);
  const int64_t first = i * options_.sequence;
  const int64_t length = Length(i);
  Sample sample;
  sample.tokens.resize(static_cast<size_t>(length));
  sample.labels.resize(static_cast<size_t>(length));
  for (int64_t t = 0; t < length; ++t) {
    sample.tokens[static_cast<size_t>(t)] = stream_[first + t];
    sample.labels[static_cast<size_t>(t)] = t < options_.masked_prefix ? kIgnoredLabel : stream_[first + t + 1];
  }
  return sample;
}

std::string TextWindows::Fingerprint() const {
  const Hash128 text = stream_.Fingerprint();
  return Hasher()
      .Update(text.high)
      .Update(text.low)
      .Update(static_cast<uint64_t>(options_.sequence))
      .Update(static_cast<uint64_t>(options_.masked_prefix))
      .Update(static_cast<uint64_t>(options_.keep_short_window))
      .Digest()
      .Hex();
}

ListDataset::ListDataset(std::vector<Sample> samples) : samples_(std::move(samples)) {
  for (const Sample& sample : samples_) PENSTOCK_CHECK_EQ(sample.tokens.size(), sample.labels.size());
}

ListDataset ListDataset::Random(const std::vector<int64_t>& lengths, int32_t vocabulary, uint64_t seed,
                                bool ignore_last) {
  const PhiloxKey key = MakePhiloxKey(seed, "random list");
  std::vector<Sample> samples;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto length = static_cast<size_t>(lengths[i]);
    std::vector<int32_t> ids;
    for (size_t t = 0; t <= length; ++t) {
      const uint32_t word = Philox({static_cast<uint32_t>(t), static_cast<uint32_t>(i), 0, 0}, key)[0];
      ids.push_back(static_cast<int32_t>(word % static_cast<uint32_t>(vocabulary)));
    }
    Sample sample{{ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()}};
    if (ignore_last && length > 0) sample.labels.back() = kIgnoredLabel;
    samples.push_back(std::move(sample));
  }
  return ListDataset(std::move(samples));
}

ListDataset ListDataset::Numbered(const std::vector<int64_t>& lengths) {
  std::vector<Sample> samples;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<int32_t> ids(static_cast<size_t>(lengths[i]), static_cast<int32_t>(i));
    samples.push_back({ids, ids});
  }
  return ListDataset(std::move(samples));
}

int64_t ListDataset::Length(int64_t i) const {
  return static_cast<int64_t>(samples_.at(static_cast<size_t>(i)).tokens.size());
}

int64_t ListDataset::ValidTokens(int64_t i) const {
  const std::vector<int32_t>& labels = samples_.at(static_cast<size_t>(i)).labels;
  return static_cast<int64_t>(labels.size()) - std::count(labels.begin(), labels.end(), kIgnoredLabel);
}

std::string ListDataset::Fingerprint() const {
  Hasher hasher;
  for (const Sample& sample : samples_) {
    hasher.Update(sample.tokens.size());
    hasher.Update(sample.tokens.data(), sample.tokens.size() * sizeof(int32_t));
    hasher.Update(sample.labels.data(), sample.labels.size() * sizeof(int32_t));
  }
  return hasher.Digest().Hex();
}

}  // namespace penstock::data
