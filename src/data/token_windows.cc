#include "data/token_windows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/order.h"

namespace penstock::data {
namespace {

constexpr int64_t kStride = 64;  // documents per entry of the index

Hash128 KeyOf(const TokenFile& file, std::string_view what) {
  const Hash128 content = file.ContentHash();
  return Hasher()
      .Update(content.high)
      .Update(content.low)
      .Update(static_cast<uint64_t>(file.file_size()))
      .Update(static_cast<uint64_t>(file.changed()))
      .Update(what)
      .Digest();
}

}  // namespace

std::shared_ptr<const IndexFile> CountTokens(const TokenFile& file, const ProgressSink& sink) {
  return IndexFile::Open(file.path() + ".index", KeyOf(file, "counts"), sink, [&] {
    std::vector<int64_t> counts;
    file.Verify(sink, &counts);
    return counts;
  });
}

TokenWindows::TokenWindows(std::shared_ptr<const TokenFile> file, const WindowOptions& options, Packing packing,
                           const ProgressSink& sink)
    : file_(std::move(file)), options_(options), packing_(packing) {
  PENSTOCK_CHECK(options.sequence >= 1 && options.masked_prefix >= 0 && options.masked_prefix < options.sequence,
                 "sequence {}, masked prefix {}", options.sequence, options.masked_prefix);
  if (packing == Packing::kCross) {
    size_ = WindowsOf(file_->tokens());
  } else {
    const std::string what =
        fmt::format("windows-{}-{}-{}", options.sequence, options.masked_prefix, options.keep_short_window ? 1 : 0);
    const auto build = [&] {
      WorkProgress progress(fmt::format("index of '{}'", file_->path()), file_->documents(), WorkProgress::Unit::count,
                            sink);
      std::vector<int64_t> before;
      int64_t windows = 0;
      for (int64_t d = 0; d < file_->documents(); ++d) {
        if (d % kStride == 0) {
          before.push_back(windows);
          if (d % (kStride * 64) == 0) progress.Update(d);
        }
        const TokenFile::Range range = file_->Document(d);
        windows += WindowsOf(range.end - range.begin);
      }
      before.push_back(windows);
      return before;
    };
    index_ = IndexFile::Open(fmt::format("{}.index-{}", file_->path(), what), KeyOf(*file_, what), sink, build);
    const std::span<const int64_t> before = index_->values();
    PENSTOCK_CHECK_EQ(static_cast<int64_t>(before.size()), (file_->documents() + kStride - 1) / kStride + 1);
    size_ = before.back();
  }
  if (size_ == 0)
    throw UserError(
        "'{}' is too short: {} tokens in {} documents do not fill one window{} of {} and the token after it; give more "
        "text or a smaller data.sequence",
        file_->path(), file_->tokens(), file_->documents(), packing == Packing::kWithin ? " within a document" : "",
        options_.keep_short_window ? options_.masked_prefix + 1 : options_.sequence);
}

int64_t TokenWindows::WindowsOf(int64_t tokens) const {
  const int64_t predictable = std::max<int64_t>(tokens - 1, 0);
  const bool rest = options_.keep_short_window && predictable % options_.sequence > options_.masked_prefix;
  return predictable / options_.sequence + (rest ? 1 : 0);
}

TokenWindows::Window TokenWindows::Find(int64_t i) const {
  PENSTOCK_CHECK(i >= 0 && i < size_, "sample {} of {}", i, size_);
  TokenFile::Range range{0, file_->tokens()};
  if (packing_ == Packing::kWithin) {
    const std::span<const int64_t> before = index_->values();
    const auto block = std::upper_bound(before.begin(), before.end() - 1, i) - 1 - before.begin();
    i -= before[static_cast<size_t>(block)];
    const int64_t last = std::min((block + 1) * kStride, file_->documents());
    for (int64_t d = block * kStride;; ++d) {
      if (d >= last) throw UserError("token file '{}': it does not have the documents of its index", file_->path());
      range = file_->Document(d);
      const int64_t windows = WindowsOf(range.end - range.begin);
      if (i < windows) break;
      i -= windows;
    }
  }
  const int64_t begin = range.begin + i * options_.sequence;
  return {begin, std::min(options_.sequence, range.end - 1 - begin)};
}

Sample TokenWindows::Get(int64_t i) const {
  const Window window = Find(i);
  Sample sample;
  sample.tokens.resize(static_cast<size_t>(window.length));
  sample.labels.resize(static_cast<size_t>(window.length));
  for (int64_t t = 0; t < window.length; ++t) {
    sample.tokens[static_cast<size_t>(t)] = (*file_)[window.begin + t];
    sample.labels[static_cast<size_t>(t)] = t < options_.masked_prefix ? kIgnoredLabel : (*file_)[window.begin + t + 1];
  }
  return sample;
}

std::string TokenWindows::Fingerprint() const {
  const Hash128 content = file_->ContentHash();
  return Hasher()
      .Update(content.high)
      .Update(content.low)
      .Update(static_cast<uint64_t>(options_.sequence))
      .Update(static_cast<uint64_t>(options_.masked_prefix))
      .Update(static_cast<uint64_t>(options_.keep_short_window))
      .Update(static_cast<uint64_t>(packing_))
      .Digest()
      .Hex();
}

ConcatDataset::ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts) : parts_(std::move(parts)) {
  PENSTOCK_CHECK(!parts_.empty(), "no part");
  int64_t end = 0;
  for (const auto& part : parts_) ends_.push_back(end += part->size());
}

std::pair<const Dataset*, int64_t> ConcatDataset::Find(int64_t i) const {
  PENSTOCK_CHECK(i >= 0 && i < size(), "sample {} of {}", i, size());
  const auto part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
  return {parts_[part].get(), i - (part == 0 ? 0 : ends_[part - 1])};
}

Sample ConcatDataset::Get(int64_t i) const {
  const auto [part, at] = Find(i);
  return part->Get(at);
}
int64_t ConcatDataset::Length(int64_t i) const {
  const auto [part, at] = Find(i);
  return part->Length(at);
}
int64_t ConcatDataset::ValidTokens(int64_t i) const {
  const auto [part, at] = Find(i);
  return part->ValidTokens(at);
}

std::string ConcatDataset::Fingerprint() const {
  Hasher hasher;
  for (const auto& part : parts_) hasher.Update(part->Fingerprint());
  return hasher.Digest().Hex();
}

MixtureDataset::MixtureDataset(std::vector<Source> sources, uint64_t seed, bool shuffle)
    : sources_(std::move(sources)), seed_(seed), shuffle_(shuffle) {
  PENSTOCK_CHECK(!sources_.empty(), "no source");
  double sum = 0;
  for (const Source& source : sources_) {
    if (!(source.weight > 0) || !std::isfinite(source.weight))
      throw UserError("source '{}': weight {}; weights are more than 0", source.name, source.weight);
    sum += source.weight;
    size_ += source.data->size();
  }
  // Largest remainders; of equal ones the first.
  std::vector<int64_t> shares;
  std::vector<double> remainders;
  for (const Source& source : sources_) {
    const double exact = static_cast<double>(kBlock) * (source.weight / sum);
    shares.push_back(static_cast<int64_t>(exact));
    remainders.push_back(exact - std::floor(exact));
  }
  std::vector<size_t> order(sources_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (int64_t left = kBlock - std::accumulate(shares.begin(), shares.end(), int64_t{0}), k = 0; left > 0; --left, ++k)
    ++shares[order[static_cast<size_t>(k) % order.size()]];
  int64_t end = 0;
  for (size_t s = 0; s < sources_.size(); ++s) {
    if (shares[s] < 1)
      throw UserError("source '{}': weight {} of {} in all is less than one sample in {}; raise it or leave it out",
                      sources_[s].name, sources_[s].weight, sum, kBlock);
    ends_.push_back(end += shares[s]);
  }
}

MixtureDataset::Place MixtureDataset::Find(int64_t i) const {
  PENSTOCK_CHECK(i >= 0, "sample {}", i);
  const int64_t block = i / kBlock;
  const uint64_t key = seed_ ^ HashName("mixture");
  const int64_t slot = KeyedPermutation(kBlock, key, block)(i % kBlock);
  Place place;
  place.source = static_cast<int>(std::upper_bound(ends_.begin(), ends_.end(), slot) - ends_.begin());
  const int64_t number = block * share(place.source) + slot - begin(place.source);  // among the samples of the source
  const int64_t n = sources_[static_cast<size_t>(place.source)].data->size();
  place.round = number / n;
  place.sample = number % n;
  if (shuffle_) {
    const uint64_t own = seed_ + 0x9E3779B97F4A7C15u * static_cast<uint64_t>(place.source + 1);
    place.sample = KeyedPermutation(n, own, place.round)(place.sample);
  }
  return place;
}

Sample MixtureDataset::Get(int64_t i) const {
  const Place place = Find(i);
  return sources_[static_cast<size_t>(place.source)].data->Get(place.sample);
}
int64_t MixtureDataset::Length(int64_t i) const {
  const Place place = Find(i);
  return sources_[static_cast<size_t>(place.source)].data->Length(place.sample);
}
int64_t MixtureDataset::ValidTokens(int64_t i) const {
  const Place place = Find(i);
  return sources_[static_cast<size_t>(place.source)].data->ValidTokens(place.sample);
}

std::string MixtureDataset::Fingerprint() const {
  Hasher hasher;
  hasher.Update(seed_).Update(static_cast<uint64_t>(shuffle_));
  for (size_t s = 0; s < sources_.size(); ++s)
    hasher.Update(sources_[s].data->Fingerprint()).Update(static_cast<uint64_t>(share(static_cast<int>(s))));
  return hasher.Digest().Hex();
}

}  // namespace penstock::data
