#include "data/images/png.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <new>

#include "base/error.h"
#include "base/file.h"
#include "data/images/reader.h"

namespace penstock::data::images {
namespace {

constexpr int64_t kMaxFile = int64_t{256} << 20;
constexpr size_t kHeader = 8 + 8 + 13;  // the signature; length and name of the chunk IHDR; what is in it
constexpr uint8_t kSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

uint32_t BigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

std::vector<uint8_t> ReadBytes(const std::string& path, int64_t at_most) {
  const std::unique_ptr<ReadableFile> file = FileSystem::Real().Open(path);
  if (file->size() > kMaxFile)
    throw UserError("'{}' has {} bytes; a PNG file of more than {} is not read", path, file->size(), kMaxFile);
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(file->size(), at_most)));
  file->ReadAt(0, {reinterpret_cast<char*>(bytes.data()), bytes.size()});
  return bytes;
}

Picture ParseHeader(const std::vector<uint8_t>& bytes, const std::string& path) {
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), kSignature, sizeof(kSignature)) != 0 ||
      BigEndian(bytes.data() + 8) != 13 || std::memcmp(bytes.data() + 12, "IHDR", 4) != 0)
    throw UserError("'{}' is no PNG file: it does not begin with the signature and the chunk IHDR", path);
  const int64_t width = BigEndian(bytes.data() + 16), height = BigEndian(bytes.data() + 20);
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide || width * height > kMaxPixels)
    throw UserError("'{}' says it has {} x {} pixels; pictures of up to {} a side and {} pixels are read", path, height,
                    width, kMaxSide, kMaxPixels);
  const int colour = bytes[25];
  const bool grey = colour == PNG_COLOR_TYPE_GRAY || colour == PNG_COLOR_TYPE_GRAY_ALPHA;
  return {grey ? 1 : 3, static_cast<int32_t>(height), static_cast<int32_t>(width), {}};
}

// libpng reports an error by longjmp, which must not pass over anything that has a destructor: the two functions that
// call setjmp have plain variables only, and all else is here, outside them.
struct Decoder {
  const uint8_t* next = nullptr;  // what libpng has not read yet
  size_t left = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  png_bytepp rows = nullptr;
  char message[256] = "";

  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

void OnError(png_structp png, png_const_charp message) {
  auto* decoder = static_cast<Decoder*>(png_get_error_ptr(png));
  std::strncpy(decoder->message, message, sizeof(decoder->message) - 1);
  png_longjmp(png, 1);
}

// What libpng only warns of concerns chunks that are not looked at, and it would write to stderr.
void OnWarning(png_structp, png_const_charp) {}

void OnRead(png_structp png, png_bytep out, size_t size) {
  auto* decoder = static_cast<Decoder*>(png_get_io_ptr(png));
  if (size > decoder->left) png_error(png, "the file ends too early");
  std::memcpy(out, decoder->next, size);
  decoder->next += size;
  decoder->left -= size;
}

// Up to the pixels. The length of a row, 0 after an error.
size_t Begin(Decoder* d) {
  if (setjmp(png_jmpbuf(d->png))) return 0;
  png_set_user_limits(d->png, static_cast<png_uint_32>(kMaxSide), static_cast<png_uint_32>(kMaxSide));
  png_set_chunk_malloc_max(d->png, png_alloc_size_t{8} << 20);
  png_set_benign_errors(d->png, 0);  // broken pixels are errors, not warnings
  // No note, profile or text is looked at, so none of them can be broken.
  png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_read_fn(d->png, d, &OnRead);
  png_read_info(d->png, d->info);
  const int colour = png_get_color_type(d->png, d->info);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(d->png);
  if (colour == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(d->png);
  png_set_strip_16(d->png);
  png_set_strip_alpha(d->png);
  png_set_interlace_handling(d->png);
  png_read_update_info(d->png, d->info);
  return png_get_rowbytes(d->png, d->info);
}

bool ReadRows(Decoder* d) {
  if (setjmp(png_jmpbuf(d->png))) return false;
  png_read_image(d->png, d->rows);
  png_read_end(d->png, nullptr);  // a file without its end is not whole
  return true;
}

}  // namespace

Picture ReadPngHeader(const std::string& path) { return ParseHeader(ReadBytes(path, kHeader), path); }

Picture ReadPng(const std::string& path) {
  const std::vector<uint8_t> bytes = ReadBytes(path, kMaxFile);
  Picture picture = ParseHeader(bytes, path);
  const auto fail = [&](const char* message) {
    return UserError("'{}' is damaged: {}; get the file again", path, message);
  };
  Decoder decoder;
  decoder.next = bytes.data();
  decoder.left = bytes.size();
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, &OnError, &OnWarning);
  if (decoder.png == nullptr) throw std::bad_alloc();
  decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) throw std::bad_alloc();
  const size_t row = Begin(&decoder);
  if (row == 0) throw fail(decoder.message);
  PENSTOCK_CHECK_EQ(row, static_cast<size_t>(picture.width) * static_cast<size_t>(picture.channels));
  picture.pixels.resize(row * static_cast<size_t>(picture.height));
  std::vector<png_bytep> rows;
  for (int32_t y = 0; y < picture.height; ++y) rows.push_back(picture.pixels.data() + static_cast<size_t>(y) * row);
  decoder.rows = rows.data();
  if (!ReadRows(&decoder)) throw fail(decoder.message);
  return picture;
}

Picture WithChannels(const Picture& picture, int32_t channels) {
  if (picture.channels == channels) return picture;
  Picture out{channels, picture.height, picture.width, {}};
  const size_t count = static_cast<size_t>(picture.height) * static_cast<size_t>(picture.width);
  out.pixels.reserve(count * static_cast<size_t>(channels));
  for (size_t k = 0; k < count; ++k) {
    if (channels == 3) {
      out.pixels.insert(out.pixels.end(), 3, picture.pixels[k]);
    } else {
      const uint8_t* p = picture.pixels.data() + 3 * k;
      out.pixels.push_back(static_cast<uint8_t>((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16));
    }
  }
  return out;
}

}  // namespace penstock::data::images
