// src/data/image_batches.h
//
// Pictures as a model takes them: normalised, augmented, in the micro-batches of a step. Which pictures are in a step
// is what data/batches.h says: index arithmetic, the same on every rank of every layout. Part of the reproducibility
// specification (docs/image_data.md): golden tests hold the split and the augmentation; do not change.
//
// Threads: immutable after construction; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/batches.h"
#include "data/images.h"

namespace penstock::data {

// Some pictures of another data set, in the order given.
class ImageSubset : public ImageDataset {
 public:
  // 0 <= index < images->size().
  ImageSubset(std::shared_ptr<const ImageDataset> images, std::vector<int64_t> indices);
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  const ImageShape& shape() const override { return images_->shape(); }
  int32_t max_value() const override { return images_->max_value(); }
  const std::vector<std::string>& classes() const override { return images_->classes(); }
  int32_t Label(int64_t i) const override { return images_->Label(Index(i)); }
  void CopyPixels(int64_t i, std::span<uint8_t> pixels) const override { images_->CopyPixels(Index(i), pixels); }
  std::string Fingerprint() const override;
  int64_t Index(int64_t i) const { return indices_.at(static_cast<size_t>(i)); }

 private:
  std::shared_ptr<const ImageDataset> images_;
  std::vector<int64_t> indices_;
};

struct ImageSplit {
  std::shared_ptr<const ImageSubset> train, validation;  // both in the order of the whole
};
// Holds back `fraction` of every class, rounded to the nearest picture, drawn by (seed, class); at least one picture
// of each class that has any stays in `train`. 0 < fraction < 1. UserError when nothing would be held back.
ImageSplit SplitImages(std::shared_ptr<const ImageDataset> images, double fraction, uint64_t seed);

// x = (p / max_value - mean) / standard_deviation, for each channel.
struct Normalisation {
  std::vector<float> mean;                // [channels]
  std::vector<float> standard_deviation;  // [channels], > 0
  // Of the training pictures. A channel that is the same everywhere has no deviation to divide by: 1 is put for it.
  static Normalisation From(const ImageStatistics& statistics);
};

// How a picture is changed each time it is seen, drawn by (seed, epoch, index in the data set) alone.
struct Augmentation {
  bool flip = false;    // left to right, every second time
  int32_t padding = 0;  // pixels of intensity 0 put around the picture, from which one of its size is cut out
};
// What is drawn: the picture moves down and right by (dy, dx), each in [-padding, padding], then is flipped.
struct Change {
  bool flip = false;
  int32_t dy = 0, dx = 0;
  friend bool operator==(const Change&, const Change&) = default;
};
Change DrawChange(const Augmentation& augmentation, uint64_t seed, int64_t epoch, int64_t index);
// pixels: [channels, height, width], changed in place.
void Apply(const Change& change, const ImageShape& shape, std::vector<uint8_t>* pixels);

struct ImageBatchOptions {
  BatchOptions order;  // its seed is also that of the augmentation
  Normalisation normalisation;
  Augmentation augmentation;  // of training; leave it out where pictures are only judged
};

struct ImageBatch {
  int32_t index = 0;
  int64_t first_slot = 0;           // slot of its first picture in the step's batch
  int64_t samples = 0;              // B, may be 0
  std::vector<int64_t> sample_ids;  // [B], epoch * size of the data set + index
  std::vector<float> pixels;        // [B, channels, height, width]
  std::vector<int32_t> labels;      // [B]
};

class ImageBatches {
 public:
  // UserError as data::Batches; also when the normalisation has not one value for each channel, or a deviation that is
  // no positive number.
  ImageBatches(std::shared_ptr<const ImageDataset> images, const ImageBatchOptions& options);

  const ImageDataset& images() const { return *images_; }
  int32_t micro_batches() const { return batches_.micro_batches(); }
  int64_t steps_per_epoch() const { return batches_.steps_per_epoch(); }
  // valid_tokens of a step is its number of pictures: the divisor of its loss.
  StepBatches MakeStep(int64_t step) const { return batches_.MakeStep(step); }
  ImageBatch Materialize(int64_t step, int32_t j) const { return Materialize(MakeStep(step), j); }
  ImageBatch Materialize(const StepBatches& step, int32_t j) const;

 private:
  std::shared_ptr<const ImageDataset> images_;
  ImageBatchOptions options_;
  Batches batches_;                 // of a data set whose samples are one token long: the label
  std::vector<float> intensities_;  // [channels, 256], the normalised value of each byte
};

}  // namespace penstock::data
