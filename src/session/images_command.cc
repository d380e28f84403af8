#include "session/images_command.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/units.h"
#include "data/images.h"

namespace penstock::session {
namespace {

constexpr int64_t kMaxShown = 100;
constexpr int64_t kMaxColumns = 38;  // of a drawing, two characters each

void ParseSize(const std::string& text, data::ImageOptions* options) {
  const size_t x = text.find('x');
  const auto parse = [](std::string_view word, int32_t* out) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *out);
    return error == std::errc() && end == word.data() + word.size() && *out >= 1;
  };
  if (x == std::string::npos || !parse(std::string_view(text).substr(0, x), &options->height) ||
      !parse(std::string_view(text).substr(x + 1), &options->width))
    throw UserError("--resize: '{}' is no size; HEIGHTxWIDTH in pixels would be, for example 32x32", text);
}

data::ImageOptions MakeOptions(const ImagesOptions& options) {
  data::ImageOptions out;
  out.kind = options.kind;
  out.labels = options.labels;
  if (options.channels != 0 && options.channels != 1 && options.channels != 3)
    throw UserError("--channels: 0 (as the files are), 1 (grey) or 3 (red, green, blue), not {}", options.channels);
  out.channels = static_cast<int32_t>(options.channels);
  if (!options.resize.empty()) ParseSize(options.resize, &out);
  try {
    out.max_bytes = ParseBytes(options.max_bytes);
  } catch (const UserError& error) {
    throw UserError("--max-bytes: {}", error.what());
  }
  if (options.show < 0 || options.show > kMaxShown)
    throw UserError("--show: 0 to {} pictures, not {}", kMaxShown, options.show);
  return out;
}

// Rows of characters, denser where brighter; two to a pixel, since a character is about twice as high as wide. Large
// pictures are drawn by the mean over blocks of k x k pixels and all channels.
std::vector<std::string> Draw(const data::ImageDataset& images, int64_t i) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const data::ImageShape& shape = images.shape();
  const data::Image image = images.Get(i);
  const int64_t k = (std::max(shape.width, shape.height) + kMaxColumns - 1) / kMaxColumns;
  std::vector<std::string> rows;
  for (int64_t y = 0; y < shape.height; y += k) {
    rows.emplace_back();
    for (int64_t x = 0; x < shape.width; x += k) {
      int64_t sum = 0, count = 0;
      for (int64_t c = 0; c < shape.channels; ++c)
        for (int64_t v = y; v < std::min<int64_t>(y + k, shape.height); ++v)
          for (int64_t u = x; u < std::min<int64_t>(x + k, shape.width); ++u, ++count)
            sum += image.pixels[static_cast<size_t>((c * shape.height + v) * shape.width + u)];
      const auto last = static_cast<int64_t>(kShades.size()) - 1;
      const int64_t full = count * images.max_value();
      rows.back().append(2, kShades[static_cast<size_t>(std::min(last, (2 * last * sum + full) / (2 * full)))]);
    }
  }
  return rows;
}

// Spread over the part: a folder begins with nothing but its first class.
std::vector<int64_t> Chosen(const data::ImageDataset& images, int64_t show) {
  std::vector<int64_t> chosen;
  const int64_t n = std::min(show, images.size());
  for (int64_t k = 0; k < n; ++k) chosen.push_back(k * images.size() / n);
  return chosen;
}

void PrintJson(const data::ImageData& found, const ImagesOptions& options, std::ostream& out) {
  const data::ImageDataset& first = *found.parts[0].images;
  const data::ImageShape& shape = first.shape();
  nlohmann::ordered_json document = {
      {"kind", found.kind},
      {"path", found.path},
      {"shape", {{"channels", shape.channels}, {"height", shape.height}, {"width", shape.width}}},
      {"max_value", first.max_value()},
      {"classes", first.classes()}};
  for (const data::ImagePart& part : found.parts) {
    const data::ImageStatistics statistics = data::Measure(*part.images);
    nlohmann::ordered_json json = {
        {"name", part.name},       {"images", part.images->size()},        {"per_class", statistics.per_class},
        {"mean", statistics.mean}, {"std", statistics.standard_deviation}, {"fingerprint", part.images->Fingerprint()}};
    for (const int64_t i : Chosen(*part.images, options.show))
      json["shown"].push_back({{"index", i}, {"label", part.images->Label(i)}, {"rows", Draw(*part.images, i)}});
    document["parts"].push_back(std::move(json));
  }
  out << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

void PrintClasses(const data::ImageDataset& images, const std::vector<int64_t>& counts, std::ostream& out) {
  constexpr size_t kListed = 20;
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  out << fmt::format("  per class     {} to {}\n", *least, *most);
  for (size_t c = 0; c < std::min(counts.size(), kListed); ++c)
    out << fmt::format("    {:<14}{}\n", images.classes()[c], counts[c]);
  if (counts.size() > kListed) out << fmt::format("    and {} more (--json lists all)\n", counts.size() - kListed);
}

void PrintText(const data::ImageData& found, const ImagesOptions& options, std::ostream& out) {
  const data::ImageDataset& first = *found.parts[0].images;
  const data::ImageShape& shape = first.shape();
  out << fmt::format("{}: {}, {} x {} pixels of 0 to {}, {} channel{}, {} classes\n", found.path, found.kind,
                     shape.height, shape.width, first.max_value(), shape.channels, shape.channels == 1 ? "" : "s",
                     first.classes().size());
  for (const data::ImagePart& part : found.parts) {
    const data::ImageStatistics statistics = data::Measure(*part.images);
    out << fmt::format("{}: {} pictures\n", part.name, part.images->size());
    out << fmt::format("  mean          {:.4f}\n", fmt::join(statistics.mean, "  "));
    out << fmt::format("  std           {:.4f}\n", fmt::join(statistics.standard_deviation, "  "));
    out << fmt::format("  fingerprint   {}\n", part.images->Fingerprint());
    PrintClasses(*part.images, statistics.per_class, out);
    for (const int64_t i : Chosen(*part.images, options.show)) {
      const auto label = static_cast<size_t>(part.images->Label(i));
      out << fmt::format("\n  picture {}: {}\n", i, part.images->classes()[label]);
      for (const std::string& row : Draw(*part.images, i)) out << "  |" << row << "|\n";
    }
  }
}

}  // namespace

int RunImages(const ImagesOptions& options, std::ostream& out) {
  const data::ImageData found = data::LoadImages(options.path, MakeOptions(options));
  options.json ? PrintJson(found, options, out) : PrintText(found, options, out);
  return 0;
}

}  // namespace penstock::session
