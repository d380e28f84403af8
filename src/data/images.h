// src/data/images.h
//
// Labelled pictures by index, and where they come from (docs/image_data.md): MNIST's IDX files, CIFAR's binary batches,
// a folder of PNG files with a sub-folder per class, and the digits that scikit-learn ships.
//
// Pixels:  one byte each, [channels, height, width] row-major; 1 channel is grey, 3 are red, green, blue. A pixel p
//          stands for the intensity p / max_value().
// Memory:  what is read is kept in memory, max_bytes at most. Headers and sizes are checked before anything as large as
//          they say is allocated.
// Order:   of the files (IDX, CIFAR), or of class and file name as bytes (folders); never of the file system.
// Threads: data sets are immutable after construction; any thread.
// Errors:  UserError that names the file and the rule it breaks; WorldError when the file system fails.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::data {

struct ImageShape {
  int32_t channels = 1;
  int32_t height = 0;
  int32_t width = 0;
  int64_t elements() const { return int64_t{channels} * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

struct Image {
  std::vector<uint8_t> pixels;  // [channels, height, width]
  int32_t label = 0;            // 0 <= label < classes
};

class ImageDataset {
 public:
  virtual ~ImageDataset() = default;
  virtual int64_t size() const = 0;
  virtual const ImageShape& shape() const = 0;
  // The value of full intensity: 255, but 16 for the digits.
  virtual int32_t max_value() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;  // names, by label
  // Both of them for 0 <= i < size(). `pixels` has shape().elements() bytes.
  virtual int32_t Label(int64_t i) const = 0;
  virtual void CopyPixels(int64_t i, std::span<uint8_t> pixels) const = 0;
  // Of pixels, labels, shape, and classes: equal fingerprints mean equal samples, whatever file they came from.
  virtual std::string Fingerprint() const = 0;

  Image Get(int64_t i) const;
};

// Pictures in memory.
class ImageList : public ImageDataset {
 public:
  // pixels: labels.size() pictures one after another.
  ImageList(const ImageShape& shape, int32_t max_value, std::vector<std::string> classes, std::vector<uint8_t> pixels,
            std::vector<int32_t> labels);
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  const ImageShape& shape() const override { return shape_; }
  int32_t max_value() const override { return max_value_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int32_t Label(int64_t i) const override { return labels_.at(static_cast<size_t>(i)); }
  void CopyPixels(int64_t i, std::span<uint8_t> pixels) const override;
  std::string Fingerprint() const override { return fingerprint_; }

 private:
  ImageShape shape_;
  int32_t max_value_;
  std::vector<std::string> classes_;
  std::vector<uint8_t> pixels_;
  std::vector<int32_t> labels_;
  std::string fingerprint_;
};

struct ImageOptions {
  std::string kind = "auto";      // or one of ImageKinds()
  std::string labels = "fine";    // CIFAR-100 has two for each picture: "fine" (100 classes) or "coarse" (20)
  int32_t channels = 0;           // of a folder: 1, 3, or 0: 1 when every picture is grey, else 3
  int32_t height = 0, width = 0;  // resize a folder's pictures to this; 0: they must be of one size
  int64_t max_bytes = int64_t{4} << 30;
};

struct ImagePart {
  std::string name;  // "train", "test", or what the files are called; "all" when they are not divided
  std::shared_ptr<const ImageDataset> images;
};

struct ImageData {
  std::string kind;              // what was recognised
  std::string path;              // where it was found
  std::vector<ImagePart> parts;  // at least one; all with the same shape, max_value and classes
};

// "mnist", "cifar10", "cifar100", "digits", "folder".
std::vector<std::string> ImageKinds();

// `path` is a file or a folder; or the word "digits", which stands for scikit-learn's file, wherever it is installed.
ImageData LoadImages(const std::string& path, const ImageOptions& options = {});

// The file digits.csv.gz of scikit-learn: of the reference packages (scripts/reference.sh), else of an installed
// Python. UserError, which says how to get it, when there is none.
std::string FindDigits();

// Mean and standard deviation (of the population) of every channel's intensities, in [0, 1]. Exact sums: they do not
// depend on the order of the pictures.
struct ImageStatistics {
  std::vector<double> mean;                // [channels]
  std::vector<double> standard_deviation;  // [channels]
  std::vector<int64_t> per_class;          // pictures of each class
};
ImageStatistics Measure(const ImageDataset& images);

}  // namespace penstock::data
