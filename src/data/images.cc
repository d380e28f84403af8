#include "data/images.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"

namespace penstock::data {

Image ImageDataset::Get(int64_t i) const {
  Image image;
  image.label = Label(i);
  image.pixels.resize(static_cast<size_t>(shape().elements()));
  CopyPixels(i, image.pixels);
  return image;
}

ImageList::ImageList(const ImageShape& shape, int32_t max_value, std::vector<std::string> classes,
                     std::vector<uint8_t> pixels, std::vector<int32_t> labels)
    : shape_(shape),
      max_value_(max_value),
      classes_(std::move(classes)),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)) {
  PENSTOCK_CHECK(max_value >= 1 && max_value <= 255, "max_value {}", max_value);
  PENSTOCK_CHECK_EQ(static_cast<int64_t>(pixels_.size()), size() * shape_.elements());
  for (const int32_t label : labels_)
    PENSTOCK_CHECK(label >= 0 && static_cast<size_t>(label) < classes_.size(), "label {} of {} classes", label,
                   classes_.size());
  Hasher hasher;
  for (const int64_t number : {int64_t{shape_.channels}, int64_t{shape_.height}, int64_t{shape_.width},
                               int64_t{max_value_}, static_cast<int64_t>(classes_.size()), size()})
    hasher.Update(static_cast<uint64_t>(number));
  // With its length, so that {"ab", "c"} and {"a", "bc"} differ.
  for (const std::string& name : classes_) hasher.Update(static_cast<uint64_t>(name.size())).Update(name);
  hasher.Update(labels_.data(), labels_.size() * sizeof(int32_t));
  hasher.Update(pixels_.data(), pixels_.size());
  fingerprint_ = hasher.Digest().Hex();
}

void ImageList::CopyPixels(int64_t i, std::span<uint8_t> pixels) const {
  PENSTOCK_CHECK(i >= 0 && i < size(), "picture {} of {}", i, size());
  PENSTOCK_CHECK_EQ(static_cast<int64_t>(pixels.size()), shape_.elements());
  std::copy_n(pixels_.begin() + i * shape_.elements(), pixels.size(), pixels.begin());
}

ImageStatistics Measure(const ImageDataset& images) {
  const ImageShape& shape = images.shape();
  const auto plane = static_cast<size_t>(shape.elements() / shape.channels);
  const auto channels = static_cast<size_t>(shape.channels);
  // 2^64 / 255^2 pixels fit, far more than the memory has.
  std::vector<uint64_t> sums(channels), squares(channels);
  ImageStatistics out;
  out.per_class.resize(images.classes().size());
  std::vector<uint8_t> pixels(static_cast<size_t>(shape.elements()));
  for (int64_t i = 0; i < images.size(); ++i) {
    ++out.per_class[static_cast<size_t>(images.Label(i))];
    images.CopyPixels(i, pixels);
    for (size_t c = 0; c < channels; ++c) {
      for (size_t k = 0; k < plane; ++k) {
        const uint64_t p = pixels[c * plane + k];
        sums[c] += p;
        squares[c] += p * p;
      }
    }
  }
  const double count = static_cast<double>(images.size()) * static_cast<double>(plane);
  const double full = images.max_value();
  for (size_t c = 0; c < channels; ++c) {
    const double mean = count > 0 ? static_cast<double>(sums[c]) / count : 0;
    const double variance = count > 0 ? static_cast<double>(squares[c]) / count - mean * mean : 0;
    out.mean.push_back(mean / full);
    out.standard_deviation.push_back(std::sqrt(std::max(variance, 0.0)) / full);
  }
  return out;
}

}  // namespace penstock::data
