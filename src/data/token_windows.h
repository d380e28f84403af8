// src/data/token_windows.h
//
// Samples from token files: windows, read from the mapping when they are asked for; several sources one after the
// other, or mixed by weight. Immutable after construction; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/index_file.h"
#include "data/token_file.h"

namespace penstock::data {

// kCross   the file is one stream, cut in windows; a window goes over ends of documents, whose last token predicts the
//          first of the next one. Attention sees the other document.
// kWithin  every document is cut by itself: no window, and so no attention and no label, crosses its end. A document of
//          n tokens (with its end) gives ceil((n - 1) / sequence) windows; the last is shorter, is padded to the
//          longest of its micro-batch, and is left out when it has no more than masked_prefix tokens, or when short
//          windows are not kept.
enum class Packing { kCross, kWithin };

// What is known of a file after a pass over it: it is whole, and how often each id occurs. Kept beside it
// (NAME.tokens.index).
std::shared_ptr<const IndexFile> CountTokens(const TokenFile& file, const ProgressSink& sink);

class TokenWindows : public Dataset {
 public:
  // UserError when there is no window; damaged files as TokenFile.
  TokenWindows(std::shared_ptr<const TokenFile> file, const WindowOptions& options, Packing packing,
               const ProgressSink& sink = {});
  int64_t size() const override { return size_; }
  Sample Get(int64_t i) const override;
  int64_t Length(int64_t i) const override { return Find(i).length; }
  int64_t ValidTokens(int64_t i) const override { return Find(i).length - options_.masked_prefix; }
  std::string Fingerprint() const override;
  const TokenFile& file() const { return *file_; }

 private:
  struct Window {
    int64_t begin = 0, length = 0;
  };
  int64_t WindowsOf(int64_t tokens) const;  // of a stream or document
  Window Find(int64_t i) const;

  std::shared_ptr<const TokenFile> file_;
  WindowOptions options_;
  Packing packing_;
  // Within documents: windows before every kStride-th document, and all of them. Small enough for any file, and the
  // rest of the way is counted.
  std::shared_ptr<const IndexFile> index_;
  int64_t size_ = 0;
};

// One after the other. Not empty.
class ConcatDataset : public Dataset {
 public:
  explicit ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts);
  int64_t size() const override { return ends_.back(); }
  Sample Get(int64_t i) const override;
  int64_t Length(int64_t i) const override;
  int64_t ValidTokens(int64_t i) const override;
  std::string Fingerprint() const override;

 private:
  std::pair<const Dataset*, int64_t> Find(int64_t i) const;
  std::vector<std::shared_ptr<const Dataset>> parts_;
  std::vector<int64_t> ends_;
};

// Sources mixed by weight, without end. The sample at place i of a run depends on the seed and i alone (any rank of any
// layout finds it in O(1)): of every kBlock samples in a row each source has its share, to the nearest sample (largest
// remainders), in an order drawn by (seed, block); and a source's own samples come in a
// shuffled order, a new one each time the source is through. Without `shuffle` a block has the next samples of every
// source as they lie, still in the order drawn. Part of the reproducibility specification: a golden test holds it; do
// not change.
class MixtureDataset : public Dataset {
 public:
  static constexpr int64_t kBlock = 10'000;
  struct Source {
    std::string name;
    std::shared_ptr<const Dataset> data;
    double weight = 1;
  };
  // UserError for a weight that is not positive and finite, or gives a source no sample of a block (it is named).
  MixtureDataset(std::vector<Source> sources, uint64_t seed, bool shuffle);

  bool endless() const override { return true; }
  int64_t size() const override { return size_; }  // of all sources together
  Sample Get(int64_t i) const override;
  int64_t Length(int64_t i) const override;
  int64_t ValidTokens(int64_t i) const override;
  std::string Fingerprint() const override;

  struct Place {
    int source = 0;
    int64_t sample = 0;  // of the source
    int64_t round = 0;   // how often the source was through before
  };
  Place Find(int64_t i) const;
  int64_t share(int source) const { return ends_[static_cast<size_t>(source)] - begin(source); }  // of a block

 private:
  int64_t begin(int source) const { return source == 0 ? 0 : ends_[static_cast<size_t>(source) - 1]; }

  std::vector<Source> sources_;
  uint64_t seed_;
  bool shuffle_;
  int64_t size_ = 0;
  std::vector<int64_t> ends_;  // of the sources' parts of a block
};

}  // namespace penstock::data
