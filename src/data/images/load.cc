// Which reader a path is for.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "data/images/byte_source.h"
#include "data/images/reader.h"

namespace penstock::data {
namespace images {
namespace {

namespace fs = std::filesystem;

struct Reader {
  const char* kind;
  bool (*recognises)(const Place&);
  ImageData (*read)(const Place&, const ImageOptions&);
};

// Asked in this order: a folder of pictures is what has no mark of its own.
constexpr Reader kReaders[] = {{"mnist", &RecognisesMnist, &ReadMnist},
                               {"cifar10", &RecognisesCifar10, &ReadCifar10},
                               {"cifar100", &RecognisesCifar100, &ReadCifar100},
                               {"digits", &RecognisesDigits, &ReadDigits},
                               {"folder", &RecognisesFolder, &ReadFolder}};

const Reader& ChooseReader(const Place& place, const std::string& kind) {
  for (const Reader& reader : kReaders)
    if (kind == "auto" ? reader.recognises(place) : kind == reader.kind) return reader;
  if (kind != "auto") throw UserError("there is no kind of pictures '{}'{}", kind, DidYouMean(kind, ImageKinds()));
  throw UserError(
      "what is in '{}' was not recognised: no IDX files (<name>-images-idx3-ubyte), no CIFAR batches "
      "(data_batch_1.bin; "
      "train.bin and test.bin), no digits.csv.gz, no sub-folders of PNG files; give the folder that holds them, or say "
      "what it is with the kind",
      place.path);
}

void CheckOptions(const ImageOptions& options) {
  if (options.channels != 0 && options.channels != 1 && options.channels != 3)
    throw UserError("pictures have 1 channel (grey) or 3 (red, green, blue), not {}", options.channels);
  const bool resize = options.height != 0 || options.width != 0;
  const auto fits = [](int32_t side) { return side >= 1 && side <= kMaxSide; };
  if (resize && !(fits(options.height) && fits(options.width)))
    throw UserError("pictures cannot be resized to {} x {}; sides are 1 to {}", options.height, options.width,
                    kMaxSide);
}

}  // namespace

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool Place::HasFile(const std::string& name) const { return std::binary_search(files.begin(), files.end(), name); }

Place LookAt(const std::string& path) {
  Place place;
  place.path = path;
  while (place.path.size() > 1 && place.path.back() == '/') place.path.pop_back();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw UserError("'{}' is not there; give a file or a folder with pictures, or the word 'digits'", path);
  place.is_folder = fs::is_directory(status);
  if (!place.is_folder) {
    if (!fs::is_regular_file(status)) throw UserError("'{}' is neither a file nor a folder", path);
    place.bytes = static_cast<int64_t>(fs::file_size(path, error));
    ByteSource source(path);
    std::vector<uint8_t> bytes;
    source.Append(16, &bytes);
    place.first_bytes.assign(bytes.begin(), bytes.end());
    return place;
  }
  fs::directory_iterator it(path, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.front() == '.') continue;
    std::error_code missing;  // a link that leads nowhere is neither
    if (it->is_directory(missing))
      place.folders.push_back(name);
    else if (it->is_regular_file(missing))
      place.files.push_back(name);
  }
  if (error) throw WorldError(fmt::format("cannot list the folder '{}': {}", path, error.message()));
  std::sort(place.files.begin(), place.files.end());
  std::sort(place.folders.begin(), place.folders.end());
  return place;
}

void Budget::Take(int64_t bytes, const std::string& path) {
  if (bytes > max_ - taken_)
    throw UserError("'{}': with it the pictures take {}, more than the {} that may be kept in memory; raise that limit",
                    path, FormatBytes(taken_ + bytes), FormatBytes(max_));
  taken_ += bytes;
}

}  // namespace images

std::vector<std::string> ImageKinds() {
  std::vector<std::string> kinds;
  for (const images::Reader& reader : images::kReaders) kinds.emplace_back(reader.kind);
  return kinds;
}

ImageData LoadImages(const std::string& path, const ImageOptions& options) {
  images::CheckOptions(options);
  std::error_code error;
  const bool named =
      path == "digits" && (options.kind == "digits" || options.kind == "auto") && !std::filesystem::exists(path, error);
  const images::Place place = images::LookAt(named ? FindDigits() : path);
  const images::Reader& reader = images::ChooseReader(place, options.kind);
  const bool folder = std::string_view(reader.kind) == "folder";
  if (!folder && (options.channels != 0 || options.height != 0))
    throw UserError("'{}' is {}: channels and size can be chosen for a folder of PNG files only", path, reader.kind);
  return reader.read(place, options);
}

}  // namespace penstock::data
