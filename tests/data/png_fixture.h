// tests/data/png_fixture.h
//
// PNG files of every kind, made through libpng.
#pragma once

#include <fmt/format.h>
#include <png.h>

#include <cstring>
#include <string>
#include <vector>

#include "data/images_fixture.h"

namespace penstock::data {

struct PngKind {
  std::string name;
  int colour = PNG_COLOR_TYPE_RGB;
  int bits = 8;
  bool interlaced = false;
  bool transparent = false;  // with a chunk tRNS
  int channels() const { return colour == PNG_COLOR_TYPE_PALETTE ? 1 : png_channels(); }
  bool grey() const { return colour == PNG_COLOR_TYPE_GRAY || colour == PNG_COLOR_TYPE_GRAY_ALPHA; }

 private:
  int png_channels() const { return (grey() ? 1 : 3) + ((colour & PNG_COLOR_MASK_ALPHA) != 0 ? 1 : 0); }
};

// Every colour type, at every depth that PNG has for it, interlaced or not, with and without a tRNS chunk.
inline std::vector<PngKind> AllPngKinds() {
  std::vector<PngKind> kinds;
  const auto add = [&](const char* name, int colour, const std::vector<int>& depths, bool may_be_transparent) {
    for (const int bits : depths)
      for (const bool interlaced : {false, true})
        for (const bool transparent : {false, true})
          if (!transparent || may_be_transparent)
            kinds.push_back({fmt::format("{}{}{}{}", name, bits, interlaced ? "i" : "", transparent ? "t" : ""), colour,
                             bits, interlaced, transparent});
  };
  add("grey", PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}, true);
  add("greyalpha", PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}, false);
  add("palette", PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}, true);
  add("rgb", PNG_COLOR_TYPE_RGB, {8, 16}, true);
  add("rgba", PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}, false);
  return kinds;
}

// Random pixels, packed as PNG packs them; drawn by `seed`. The file has a gamma, a text and a profile's name too.
inline std::string MakePng(const PngKind& kind, int height, int width, uint64_t seed) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep bytes, size_t n) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(bytes), n);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), kind.bits, kind.colour,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (kind.colour == PNG_COLOR_TYPE_PALETTE) {
    const int entries = 1 << kind.bits;
    std::string colours = RandomBytes(3 * static_cast<size_t>(entries), seed + 1000);
    png_set_PLTE(png, info, reinterpret_cast<png_colorp>(colours.data()), entries);
    png_byte alpha[2] = {0, 128};
    if (kind.transparent) png_set_tRNS(png, info, alpha, 2, nullptr);
  } else if (kind.transparent) {
    png_color_16 colour{};
    colour.gray = colour.red = 1;
    png_set_tRNS(png, info, nullptr, 0, &colour);
  }
  png_set_gAMA(png, info, 0.3);
  char key[] = "Comment", text[] = "made by a test";
  png_text note{};
  note.compression = PNG_TEXT_COMPRESSION_NONE;
  note.key = key;
  note.text = text;
  png_set_text(png, info, &note, 1);
  png_write_info(png, info);
  const size_t row = (static_cast<size_t>(width) * static_cast<size_t>(kind.channels() * kind.bits) + 7) / 8;
  std::string pixels = RandomBytes(row * static_cast<size_t>(height), seed);
  std::vector<png_bytep> rows;
  for (int y = 0; y < height; ++y)
    rows.push_back(reinterpret_cast<png_bytep>(pixels.data()) + static_cast<size_t>(y) * row);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

// With the check sum of every chunk put right, so that a change gets past it.
inline std::string WithRightSums(std::string png) {
  const auto number = [&](size_t at) {
    uint32_t n = 0;
    for (size_t k = 0; k < 4; ++k) n = n << 8 | static_cast<uint8_t>(png[at + k]);
    return n;
  };
  for (size_t at = 8; at + 12 <= png.size();) {
    const size_t length = number(at);
    if (length > png.size() - at - 12) break;
    const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(png.data()) + at + 4, static_cast<uInt>(length + 4));
    for (size_t k = 0; k < 4; ++k) png[at + 8 + length + k] = static_cast<char>(sum >> (24 - 8 * k));
    at += length + 12;
  }
  return png;
}

}  // namespace penstock::data
