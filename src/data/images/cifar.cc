// The binary batches of CIFAR-10 and CIFAR-100: records of one or two label bytes (CIFAR-100: coarse, then fine) and
// 3072 pixels, 32 x 32 red ones, then green, then blue. https://www.cs.toronto.edu/~kriz/cifar.html
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "data/images/byte_source.h"
#include "data/images/reader.h"

namespace penstock::data::images {
namespace {

constexpr ImageShape kShape{3, 32, 32};
constexpr size_t kPixels = 3 * 32 * 32;

struct Format {
  std::string kind;
  std::vector<int32_t> label_limits;  // classes of each label byte
  size_t label = 0;                   // which one is taken
  size_t record() const { return label_limits.size() + kPixels; }
  int32_t classes() const { return label_limits[label]; }
};

struct PartFiles {
  std::string part;
  std::vector<std::string> files;
};

void ReadRecords(const std::string& path, const Format& format, Budget& budget, Pictures* out) {
  ByteSource source(path);
  std::vector<uint8_t> record(format.record());
  for (int64_t i = 0;; ++i) {
    const size_t n = source.Read(record);
    if (n == 0 && i == 0)
      throw UserError("'{}' is empty; {} batches have records of {} bytes", path, format.kind, record.size());
    if (n == 0) return;
    if (n < record.size())
      throw UserError("'{}' is cut off, or no {} batch: its last record, {}, has {} bytes of {}", path, format.kind, i,
                      n, record.size());
    for (size_t k = 0; k < format.label_limits.size(); ++k)
      if (record[k] >= format.label_limits[k])
        throw UserError("'{}': record {} has the {}label {}; {} has 0 to {}", path, i,
                        format.label_limits.size() == 1 ? ""
                        : k == 0                        ? "coarse "
                                                        : "fine ",
                        record[k], format.kind, format.label_limits[k] - 1);
    budget.Take(static_cast<int64_t>(kPixels + sizeof(int32_t)), path);
    out->labels.push_back(record[format.label]);
    out->pixels.insert(out->pixels.end(), record.end() - static_cast<ptrdiff_t>(kPixels), record.end());
  }
}

// One name a line; blank lines at the end do not count.
std::vector<std::string> ReadNames(const std::string& path, int32_t count) {
  ByteSource source(path);
  std::vector<uint8_t> bytes;
  constexpr int64_t kMaxBytes = 1 << 16;
  if (source.Append(kMaxBytes, &bytes) == kMaxBytes) throw UserError("'{}' is too long for {} names", path, count);
  std::vector<std::string> names(1);
  for (const uint8_t byte : bytes) {
    if (byte == '\n')
      names.emplace_back();
    else if (byte != '\r')
      names.back() += static_cast<char>(byte);
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (names.size() != static_cast<size_t>(count))
    throw UserError("'{}' has {} names, one a line; there are {} classes", path, names.size(), count);
  return names;
}

std::vector<std::string> ClassNames(const Place& place, const std::string& file, int32_t count) {
  if (place.is_folder && place.HasFile(file)) return ReadNames(place.File(file), count);
  if (count == 10) return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  std::vector<std::string> numbers;
  for (int32_t c = 0; c < count; ++c) numbers.push_back(std::to_string(c));
  return numbers;
}

ImageData ReadParts(const Place& place, const Format& format, const std::vector<PartFiles>& parts,
                    const std::string& names, const ImageOptions& options) {
  Budget budget(options.max_bytes);
  const std::vector<std::string> classes = ClassNames(place, names, format.classes());
  ImageData out{format.kind, place.path, {}};
  for (const PartFiles& part : parts) {
    if (place.is_folder) {
      // A download that stopped half-way would otherwise pass for a smaller data set.
      for (const std::string& file : part.files)
        if (!place.HasFile(file))
          throw UserError("'{}' is not there; the {} part of {} is {} files (or name a single batch file)",
                          place.File(file), part.part, format.kind, part.files.size());
    }
    Pictures pictures;
    for (const std::string& file : part.files)
      ReadRecords(place.is_folder ? place.File(file) : file, format, budget, &pictures);
    out.parts.push_back({part.part, std::make_shared<ImageList>(kShape, 255, classes, std::move(pictures.pixels),
                                                                std::move(pictures.labels))});
  }
  return out;
}

bool IsBatch(const Place& place, int64_t record) {
  return EndsWith(place.path, ".bin") && place.bytes > 0 && place.bytes % record == 0;
}

}  // namespace

bool RecognisesCifar10(const Place& place) {
  if (place.is_folder) return place.HasFile("data_batch_1.bin") || place.HasFile("test_batch.bin");
  return IsBatch(place, 1 + kPixels);
}

ImageData ReadCifar10(const Place& place, const ImageOptions& options) {
  std::vector<PartFiles> parts = {{"all", {place.path}}};
  if (place.is_folder) {
    parts = {{"train", {}}, {"test", {"test_batch.bin"}}};
    for (int b = 1; b <= 5; ++b) parts[0].files.push_back("data_batch_" + std::to_string(b) + ".bin");
  }
  return ReadParts(place, {"cifar10", {10}, 0}, parts, "batches.meta.txt", options);
}

bool RecognisesCifar100(const Place& place) {
  if (place.is_folder) return place.HasFile("train.bin") && place.HasFile("test.bin");
  return IsBatch(place, 2 + kPixels);
}

ImageData ReadCifar100(const Place& place, const ImageOptions& options) {
  if (options.labels != "fine" && options.labels != "coarse")
    throw UserError("the labels of CIFAR-100 are 'fine' or 'coarse', not '{}'", options.labels);
  const bool fine = options.labels == "fine";
  std::vector<PartFiles> parts = {{"all", {place.path}}};
  if (place.is_folder) parts = {{"train", {"train.bin"}}, {"test", {"test.bin"}}};
  return ReadParts(place, {"cifar100", {20, 100}, fine ? size_t{1} : size_t{0}}, parts,
                   fine ? "fine_label_names.txt" : "coarse_label_names.txt", options);
}

}  // namespace penstock::data::images
