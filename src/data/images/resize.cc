#include "data/images/resize.h"

#include <algorithm>
#include <cstdlib>

namespace penstock::data::images {
namespace {

// The pixels that make up one pixel of the result, and their weights.
struct Taps {
  int64_t first = 0;
  std::vector<int64_t> weights;
  int64_t sum = 0;
};

// In units of 1 / (2 out) of a pixel of the input: pixel x has its middle at (2 x + 1) out, pixel o of the result at
// (2 o + 1) in, and the triangle reaches 2 max(in, out) to either side.
std::vector<Taps> MakeTaps(int64_t in, int64_t out) {
  std::vector<Taps> all;
  const int64_t reach = 2 * std::max(in, out);
  for (int64_t o = 0; o < out; ++o) {
    const int64_t middle = (2 * o + 1) * in;
    Taps taps;
    taps.first = std::max<int64_t>(0, (middle - reach) / (2 * out) - 1);
    for (int64_t x = taps.first; x < in && (2 * x + 1) * out < middle + reach; ++x) {
      const int64_t distance = (2 * x + 1) * out - middle;
      taps.weights.push_back(std::max<int64_t>(0, reach - std::abs(distance)));
      taps.sum += taps.weights.back();
    }
    all.push_back(std::move(taps));
  }
  return all;
}

int64_t Round(int64_t numerator, int64_t denominator) { return (2 * numerator + denominator) / (2 * denominator); }

// Of the picture between the two passes: 1/256 of a grey level. Sums stay below 2^46.
constexpr int64_t kFine = 256;

}  // namespace

Picture Resize(const Picture& picture, int32_t height, int32_t width) {
  if (picture.height == height && picture.width == width) return picture;
  const auto channels = static_cast<int64_t>(picture.channels);
  const std::vector<Taps> across = MakeTaps(picture.width, width), down = MakeTaps(picture.height, height);
  std::vector<uint16_t> middle(static_cast<size_t>(int64_t{picture.height} * width * channels));
  size_t at = 0;
  for (int64_t y = 0; y < picture.height; ++y) {
    for (const Taps& taps : across) {
      for (int64_t c = 0; c < channels; ++c) {
        int64_t sum = 0;
        for (size_t k = 0; k < taps.weights.size(); ++k) {
          const int64_t x = taps.first + static_cast<int64_t>(k);
          sum += taps.weights[k] * picture.pixels[static_cast<size_t>((y * picture.width + x) * channels + c)];
        }
        middle[at++] = static_cast<uint16_t>(Round(sum * kFine, taps.sum));
      }
    }
  }
  Picture out{picture.channels, height, width, {}};
  const int64_t row = width * channels;
  out.pixels.reserve(static_cast<size_t>(height * row));
  for (const Taps& taps : down) {
    for (int64_t x = 0; x < row; ++x) {
      int64_t sum = 0;
      for (size_t k = 0; k < taps.weights.size(); ++k)
        sum += taps.weights[k] * middle[static_cast<size_t>((taps.first + static_cast<int64_t>(k)) * row + x)];
      out.pixels.push_back(static_cast<uint8_t>(Round(sum, taps.sum * kFine)));
    }
  }
  return out;
}

}  // namespace penstock::data::images
