// The IDX files of MNIST, and of those made in its likeness (Fashion-MNIST, EMNIST, KMNIST): big-endian, two zero
// bytes, the type of the values (8: unsigned bytes), the number of dimensions, the dimensions, the values.
// http://yann.lecun.com/exdb/mnist (the section on file formats).
#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "data/images/byte_source.h"
#include "data/images/reader.h"

namespace penstock::data::images {
namespace {

constexpr uint32_t kImages = 0x00000803;
constexpr uint32_t kLabels = 0x00000801;

uint32_t BigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

std::vector<int64_t> ReadHeader(ByteSource& source, uint32_t magic) {
  std::vector<uint8_t> bytes(4 + 4 * (magic & 0xff));
  const size_t n = source.Read(bytes);
  const char* what = magic == kImages ? "pictures" : "labels";
  if (n >= 4 && BigEndian(bytes.data()) != magic)
    throw UserError("'{}' is no IDX file of {}: it begins with {:08x}, not {:08x}", source.path(), what,
                    BigEndian(bytes.data()), magic);
  if (n < bytes.size())
    throw UserError("'{}' is no IDX file of {}: it ends after {} bytes, inside the header", source.path(), what, n);
  std::vector<int64_t> dimensions;
  for (size_t at = 4; at < bytes.size(); at += 4) dimensions.push_back(BigEndian(bytes.data() + at));
  return dimensions;
}

void ReadValues(ByteSource& source, int64_t bytes, std::vector<uint8_t>* out) {
  const int64_t n = source.Append(bytes, out);
  if (n < bytes)
    throw UserError("'{}' is cut off: its header promises {} bytes, it has {}; get the file again", source.path(),
                    bytes, n);
  if (!source.AtEnd())
    throw UserError("'{}' goes on behind the {} bytes that its header promises", source.path(), bytes);
}

struct Files {
  std::string prefix;  // "train" of "train-images-idx3-ubyte"
  std::string images, labels;
};

// "train-images-idx3-ubyte" and "train-labels-idx1-ubyte", with '.' for '-' before "idx" and with ".gz".
constexpr std::string_view kImagesEnds[] = {"-images-idx3-ubyte", "-images.idx3-ubyte", "-images-idx3-ubyte.gz",
                                            "-images.idx3-ubyte.gz"};
constexpr std::string_view kLabelsEnds[] = {"-labels-idx1-ubyte", "-labels.idx1-ubyte", "-labels-idx1-ubyte.gz",
                                            "-labels.idx1-ubyte.gz"};

std::optional<std::string> PrefixOf(const std::string& name) {
  for (const std::string_view end : kImagesEnds)
    if (EndsWith(name, std::string(end))) return name.substr(0, name.size() - end.size());
  return std::nullopt;
}

std::string PartOf(const std::string& prefix) { return prefix == "t10k" ? "test" : prefix.empty() ? "all" : prefix; }

std::string FindLabels(const std::string& folder, const std::string& prefix, const Place& place,
                       const std::string& images) {
  for (const std::string_view end : kLabelsEnds)
    if (place.HasFile(prefix + std::string(end))) return folder + "/" + prefix + std::string(end);
  throw UserError("'{}' has no labels beside it: '{}/{}{}' is not there (nor with .gz)", images, folder, prefix,
                  kLabelsEnds[0]);
}

std::vector<Files> FindFiles(const Place& place) {
  std::vector<Files> found;
  std::string folder = place.path;
  Place around = place;
  std::vector<std::string> names = place.files;
  if (!place.is_folder) {
    const size_t slash = place.path.rfind('/');
    folder = slash == std::string::npos ? "." : slash == 0 ? "/" : place.path.substr(0, slash);
    names = {place.path.substr(slash == std::string::npos ? 0 : slash + 1)};
    around = LookAt(folder);
    if (!PrefixOf(names[0]))
      throw UserError(
          "'{}' does not say where its labels are: an IDX file of pictures is called <name>-images-idx3-ubyte and has "
          "<name>-labels-idx1-ubyte beside it",
          place.path);
  }
  for (const std::string& name : names) {
    const std::optional<std::string> prefix = PrefixOf(name);
    if (!prefix) continue;
    // Names ascend, so the compressed copy of a file follows it.
    if (std::any_of(found.begin(), found.end(), [&](const Files& f) { return f.prefix == *prefix; })) continue;
    const std::string images = folder + "/" + name;
    found.push_back({*prefix, images, FindLabels(folder, *prefix, around, images)});
  }
  if (found.empty())
    throw UserError("'{}' has no IDX files: no <name>-images-idx3-ubyte (nor with .gz) is in it", place.path);
  // Training first, then the others by name.
  std::stable_partition(found.begin(), found.end(), [](const Files& f) { return f.prefix == "train"; });
  return found;
}

Pictures ReadPart(const Files& files, Budget& budget, ImageShape* shape) {
  Pictures out;
  out.part = PartOf(files.prefix);
  ByteSource images(files.images);
  const std::vector<int64_t> dimensions = ReadHeader(images, kImages);
  const int64_t count = dimensions[0], height = dimensions[1], width = dimensions[2];
  if (count < 1 || height < 1 || width < 1 || height > kMaxSide || width > kMaxSide || height * width > kMaxPixels)
    throw UserError("'{}': its header promises {} pictures of {} x {}; sides are 1 to {}", files.images, count, height,
                    width, kMaxSide);
  const ImageShape own{1, static_cast<int32_t>(height), static_cast<int32_t>(width)};
  if (shape->height != 0 && !(own == *shape))
    throw UserError("'{}' has pictures of {} x {}, the files before it have {} x {}", files.images, height, width,
                    shape->height, shape->width);
  *shape = own;
  ByteSource labels(files.labels);
  const int64_t label_count = ReadHeader(labels, kLabels)[0];
  if (label_count != count)
    throw UserError("'{}' has {} labels, '{}' has {} pictures", files.labels, label_count, files.images, count);
  budget.Take(count * (height * width + static_cast<int64_t>(sizeof(int32_t))), files.images);
  ReadValues(images, count * height * width, &out.pixels);
  std::vector<uint8_t> bytes;
  ReadValues(labels, count, &bytes);
  out.labels.assign(bytes.begin(), bytes.end());
  return out;
}

}  // namespace

bool RecognisesMnist(const Place& place) {
  if (!place.is_folder) return place.first_bytes.substr(0, 4) == std::string("\0\0\x08\x03", 4);
  return std::any_of(place.files.begin(), place.files.end(),
                     [](const std::string& name) { return PrefixOf(name).has_value(); });
}

ImageData ReadMnist(const Place& place, const ImageOptions& options) {
  Budget budget(options.max_bytes);
  ImageShape shape;
  std::vector<Pictures> parts;
  int32_t last = 0;
  for (const Files& files : FindFiles(place)) {
    parts.push_back(ReadPart(files, budget, &shape));
    last = std::max(last, *std::max_element(parts.back().labels.begin(), parts.back().labels.end()));
  }
  std::vector<std::string> classes;
  for (int32_t c = 0; c <= last; ++c) classes.push_back(std::to_string(c));
  ImageData out{"mnist", place.path, {}};
  for (Pictures& p : parts)
    out.parts.push_back(
        {p.part, std::make_shared<ImageList>(shape, 255, classes, std::move(p.pixels), std::move(p.labels))});
  return out;
}

}  // namespace penstock::data::images
