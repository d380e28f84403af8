#include "data/image_batches.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/philox.h"
#include "data/order.h"

namespace penstock::data {
namespace {

// What data::Batches needs to know of pictures: every sample is one item with one label.
class LabelsOnly : public Dataset {
 public:
  explicit LabelsOnly(std::shared_ptr<const ImageDataset> images) : images_(std::move(images)) {}
  int64_t size() const override { return images_->size(); }
  Sample Get(int64_t i) const override { return {{0}, {images_->Label(i)}}; }
  int64_t Length(int64_t) const override { return 1; }
  int64_t ValidTokens(int64_t) const override { return 1; }
  std::string Fingerprint() const override { return images_->Fingerprint(); }

 private:
  std::shared_ptr<const ImageDataset> images_;
};

// Uniform in [0, n).
int32_t Below(uint32_t word, int32_t n) {
  return static_cast<int32_t>((uint64_t{word} * static_cast<uint64_t>(n)) >> 32);
}

}  // namespace

ImageSubset::ImageSubset(std::shared_ptr<const ImageDataset> images, std::vector<int64_t> indices)
    : images_(std::move(images)), indices_(std::move(indices)) {
  for (const int64_t i : indices_)
    PENSTOCK_CHECK(i >= 0 && i < images_->size(), "picture {} of {}", i, images_->size());
}

std::string ImageSubset::Fingerprint() const {
  Hasher hasher;
  hasher.Update(images_->Fingerprint());
  for (const int64_t i : indices_) hasher.Update(static_cast<uint64_t>(i));
  return hasher.Digest().Hex();
}

ImageSplit SplitImages(std::shared_ptr<const ImageDataset> images, double fraction, uint64_t seed) {
  PENSTOCK_CHECK(fraction > 0 && fraction < 1, "fraction {}", fraction);
  std::vector<std::vector<int64_t>> members(images->classes().size());
  for (int64_t i = 0; i < images->size(); ++i) members[static_cast<size_t>(images->Label(i))].push_back(i);
  std::vector<int64_t> train, validation;
  const uint64_t split_seed = seed ^ HashName("image split");  // not the order of training
  for (size_t c = 0; c < members.size(); ++c) {
    const auto n = static_cast<int64_t>(members[c].size());
    if (n == 0) continue;
    const int64_t held = std::min<int64_t>(n - 1, std::llround(fraction * static_cast<double>(n)));
    const KeyedPermutation order(n, split_seed, static_cast<int64_t>(c));
    for (int64_t k = 0; k < n; ++k)
      (k < held ? validation : train).push_back(members[c][static_cast<size_t>(order(k))]);
  }
  if (validation.empty())
    throw UserError("{} of {} pictures in {} classes holds none back; take a larger fraction", fraction, images->size(),
                    members.size());
  std::sort(train.begin(), train.end());
  std::sort(validation.begin(), validation.end());
  return {std::make_shared<ImageSubset>(images, std::move(train)),
          std::make_shared<ImageSubset>(images, std::move(validation))};
}

Normalisation Normalisation::From(const ImageStatistics& statistics) {
  Normalisation out;
  for (const double mean : statistics.mean) out.mean.push_back(static_cast<float>(mean));
  for (const double deviation : statistics.standard_deviation)
    out.standard_deviation.push_back(deviation > 0 ? static_cast<float>(deviation) : 1.0f);
  return out;
}

Change DrawChange(const Augmentation& augmentation, uint64_t seed, int64_t epoch, int64_t index) {
  const auto e = static_cast<uint64_t>(epoch), i = static_cast<uint64_t>(index);
  const PhiloxCounter random = Philox({static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32),
                                       static_cast<uint32_t>(e), static_cast<uint32_t>(e >> 32)},
                                      MakePhiloxKey(seed, "augment"));
  const int32_t places = 2 * augmentation.padding + 1;
  return {augmentation.flip && random[0] >> 31 != 0, Below(random[1], places) - augmentation.padding,
          Below(random[2], places) - augmentation.padding};
}

void Apply(const Change& change, const ImageShape& shape, std::vector<uint8_t>* pixels) {
  if (change == Change{}) return;
  std::vector<uint8_t> out(pixels->size(), 0);
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t y = 0; y < shape.height; ++y) {
      const int64_t from_y = y - change.dy;
      if (from_y < 0 || from_y >= shape.height) continue;
      for (int64_t x = 0; x < shape.width; ++x) {
        const int64_t from_x = (change.flip ? shape.width - 1 - x : x) - change.dx;
        if (from_x < 0 || from_x >= shape.width) continue;
        out[static_cast<size_t>((c * shape.height + y) * shape.width + x)] =
            (*pixels)[static_cast<size_t>((c * shape.height + from_y) * shape.width + from_x)];
      }
    }
  }
  pixels->swap(out);
}

ImageBatches::ImageBatches(std::shared_ptr<const ImageDataset> images, const ImageBatchOptions& options)
    : images_(std::move(images)), options_(options), batches_(std::make_shared<LabelsOnly>(images_), options.order) {
  const auto channels = static_cast<size_t>(images_->shape().channels);
  const Normalisation& n = options_.normalisation;
  if (n.mean.size() != channels || n.standard_deviation.size() != channels)
    throw UserError("the normalisation has {} means and {} standard deviations; the pictures have {} channels",
                    n.mean.size(), n.standard_deviation.size(), channels);
  const int32_t padding = options_.augmentation.padding;
  PENSTOCK_CHECK(padding >= 0 && padding <= (1 << 20), "padding {}", padding);
  const auto full = static_cast<float>(images_->max_value());
  for (size_t c = 0; c < channels; ++c) {
    if (!(n.standard_deviation[c] > 0) || !std::isfinite(n.standard_deviation[c]) || !std::isfinite(n.mean[c]))
      throw UserError("channel {} cannot be normalised with the mean {} and the standard deviation {}", c, n.mean[c],
                      n.standard_deviation[c]);
    for (int p = 0; p < 256; ++p)
      intensities_.push_back((static_cast<float>(p) / full - n.mean[c]) / n.standard_deviation[c]);
  }
}

ImageBatch ImageBatches::Materialize(const StepBatches& step, int32_t j) const {
  const MicroBatch labels = batches_.Materialize(step, j);
  ImageBatch out{labels.index, labels.first_slot, labels.samples, labels.sample_ids, {}, labels.labels};
  const ImageShape& shape = images_->shape();
  const auto elements = static_cast<size_t>(shape.elements());
  const size_t plane = elements / static_cast<size_t>(shape.channels);
  std::vector<uint8_t> pixels(elements);
  out.pixels.reserve(static_cast<size_t>(out.samples) * elements);
  for (const int64_t id : out.sample_ids) {
    const int64_t epoch = id / images_->size(), index = id % images_->size();
    images_->CopyPixels(index, pixels);
    Apply(DrawChange(options_.augmentation, options_.order.seed, epoch, index), shape, &pixels);
    for (size_t k = 0; k < elements; ++k) out.pixels.push_back(intensities_[k / plane * 256 + pixels[k]]);
  }
  return out;
}

}  // namespace penstock::data
