// A folder of PNG files, a sub-folder per class; or one with `train` and such, each of which is like that.
#include <algorithm>
#include <memory>
#include <set>

#include "base/error.h"
#include "data/images/png.h"
#include "data/images/reader.h"
#include "data/images/resize.h"

namespace penstock::data::images {
namespace {

std::string Lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool IsPng(const std::string& name) { return EndsWith(Lower(name), ".png"); }

bool HasPng(const Place& place) { return std::any_of(place.files.begin(), place.files.end(), IsPng); }

bool HasClasses(const Place& place) {
  return std::any_of(place.folders.begin(), place.folders.end(),
                     [&](const std::string& name) { return HasPng(LookAt(place.File(name))); });
}

constexpr const char* kParts[] = {"train", "test", "val", "validation"};

// The parts of a folder with `train` in it; none when it holds the classes itself.
std::vector<std::string> FindParts(const Place& place) {
  const auto holds = [&](const std::string& name) {
    return std::binary_search(place.folders.begin(), place.folders.end(), name) && HasClasses(LookAt(place.File(name)));
  };
  std::vector<std::string> parts;
  if (!holds("train")) return parts;
  for (const char* part : kParts)
    if (holds(part)) parts.emplace_back(part);
  for (const std::string& name : place.folders)
    if (std::find(parts.begin(), parts.end(), name) == parts.end())
      throw UserError(
          "'{}' stands beside 'train' and is no part with classes; the parts of a folder are {}, {}, {}, {}",
          place.File(name), kParts[0], kParts[1], kParts[2], kParts[3]);
  return parts;
}

struct File {
  std::string path;
  std::string class_name;
};

// The pictures of a class, and a reason for everything else that looks like one: half a data set read in silence is
// worse than none.
void ListClass(const Place& parent, const std::string& name, std::vector<File>* out) {
  const Place place = LookAt(parent.File(name));
  if (!place.folders.empty())
    throw UserError("'{}' is a folder inside the class '{}'; the folder of a class holds PNG files only",
                    place.File(place.folders[0]), name);
  if (!HasPng(place)) throw UserError("the class '{}' has no PNG file in '{}'", name, place.path);
  static constexpr const char* kOthers[] = {".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"};
  for (const std::string& file : place.files) {
    if (IsPng(file)) {
      out->push_back({place.File(file), name});
      continue;
    }
    for (const char* end : kOthers)
      if (EndsWith(Lower(file), end))
        throw UserError("'{}' is not a PNG file, and only those are read; convert it or take it away",
                        place.File(file));
  }
}

std::vector<File> ListPart(const Place& place) {
  std::vector<File> files;
  for (const std::string& name : place.folders) ListClass(place, name, &files);
  if (files.empty()) throw UserError("'{}' has no sub-folder with PNG files; each class is a sub-folder", place.path);
  return files;
}

struct Part {
  std::string name;
  std::vector<File> files;
};

// Looks at every header before a picture is decoded: what does not fit together, or into memory, is known at once.
ImageShape ChooseShape(const std::vector<Part>& parts, const ImageOptions& options) {
  ImageShape shape{1, options.height, options.width};
  std::string first;
  for (const Part& part : parts) {
    for (const File& file : part.files) {
      const Picture header = ReadPngHeader(file.path);
      shape.channels = std::max(shape.channels, header.channels);
      if (options.height != 0) continue;
      if (first.empty()) {
        first = file.path;
        shape.height = header.height;
        shape.width = header.width;
      }
      if (header.height != shape.height || header.width != shape.width)
        throw UserError(
            "'{}' has {} x {} pixels (height x width), '{}' has {} x {}; they must agree, unless all are "
            "resized to one size",
            file.path, header.height, header.width, first, shape.height, shape.width);
    }
  }
  if (options.channels != 0) shape.channels = options.channels;
  Budget budget(options.max_bytes);
  for (const Part& part : parts)
    for (const File& file : part.files)
      budget.Take(shape.elements() + static_cast<int64_t>(sizeof(int32_t)), file.path);
  return shape;
}

std::shared_ptr<const ImageDataset> ReadPart(const Part& part, const ImageShape& shape, const ImageOptions& options,
                                             const std::vector<std::string>& classes) {
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  const auto elements = static_cast<size_t>(shape.elements());
  const auto channels = static_cast<size_t>(shape.channels);
  pixels.reserve(part.files.size() * elements);
  for (const File& file : part.files) {
    Picture picture = WithChannels(ReadPng(file.path), shape.channels);
    if (options.height != 0) picture = Resize(picture, shape.height, shape.width);
    if (picture.height != shape.height || picture.width != shape.width)
      throw UserError("'{}' changed while it was read", file.path);
    for (size_t c = 0; c < channels; ++c)
      for (size_t k = c; k < elements; k += channels) pixels.push_back(picture.pixels[k]);
    const auto at = std::lower_bound(classes.begin(), classes.end(), file.class_name);
    labels.push_back(static_cast<int32_t>(at - classes.begin()));
  }
  return std::make_shared<ImageList>(shape, 255, classes, std::move(pixels), std::move(labels));
}

}  // namespace

bool RecognisesFolder(const Place& place) {
  return place.is_folder && (HasClasses(place) || !FindParts(place).empty());
}

ImageData ReadFolder(const Place& place, const ImageOptions& options) {
  if (!place.is_folder)
    throw UserError("'{}' is a file; give the folder whose sub-folders are the classes", place.path);
  std::vector<Part> parts;
  for (const std::string& name : FindParts(place)) parts.push_back({name, ListPart(LookAt(place.File(name)))});
  if (parts.empty()) parts.push_back({"all", ListPart(place)});
  std::set<std::string> names;
  for (const Part& part : parts)
    for (const File& file : part.files) names.insert(file.class_name);
  const std::vector<std::string> classes(names.begin(), names.end());
  const ImageShape shape = ChooseShape(parts, options);
  ImageData out{"folder", place.path, {}};
  for (const Part& part : parts) out.parts.push_back({part.name, ReadPart(part, shape, options, classes)});
  return out;
}

}  // namespace penstock::data::images
