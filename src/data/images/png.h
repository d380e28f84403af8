// src/data/images/png.h
//
// PNG files of every colour type and bit depth, interlaced or not, as 8-bit grey or RGB:
//
//   grey of 1, 2, 4 bits   spread over 0..255
//   16 bits                the high byte
//   palette                its colours
//   transparency           left out: what is under it counts
//   gamma, colour profile  and all other notes in the file: ignored
//
// Errors: UserError for a file that breaks the format or the limits of data/images/reader.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::data::images {

struct Picture {
  int32_t channels = 1;
  int32_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, channels]
};

// Of the first bytes of the file alone: its pixels are not looked at, `pixels` is empty.
Picture ReadPngHeader(const std::string& path);
Picture ReadPng(const std::string& path);

// 1 -> 3: red = green = blue = grey. 3 -> 1: the luma of ITU-R BT.601, (19595 R + 38470 G + 7471 B + 32768) / 65536.
Picture WithChannels(const Picture& picture, int32_t channels);

}  // namespace penstock::data::images
