// tests/data/images_fixture.h
//
// Files with pictures, made by the tests themselves, in a folder that goes when the test ends.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "data/images.h"

namespace penstock::data {

class ImageFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "penstock-images-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string At(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(At(name)).parent_path());
    // A new file: some file systems flush one that is cut to nothing and written again, which takes milliseconds.
    std::filesystem::remove(At(name));
    std::ofstream(At(name), std::ios::binary) << bytes;
    return At(name);
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(At(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_;
};

// Bytes drawn by (seed, position), each below `limit`.
inline std::string RandomBytes(size_t count, uint64_t seed, uint32_t limit = 256) {
  const PhiloxKey key = MakePhiloxKey(seed, "test pictures");
  std::string bytes;
  for (size_t i = 0; i < count; ++i)
    bytes += static_cast<char>(Philox({static_cast<uint32_t>(i), 0, 0, 0}, key)[0] % limit);
  return bytes;
}

inline std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// The message of the UserError; "accepted" when there is none. Any other exception fails the test.
inline std::string Refusal(const std::string& path, const ImageOptions& options = {}) {
  try {
    LoadImages(path, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

inline std::string Pixels(const ImageDataset& images, int64_t i) {
  const Image image = images.Get(i);
  return {image.pixels.begin(), image.pixels.end()};
}

// A file as it may arrive: cut off, with a byte changed, with bytes put in, taken out or doubled. Draw number `n`.
inline std::string Mutate(const std::string& bytes, uint32_t n) {
  const PhiloxCounter r = Philox({n, 0, 0, 0}, MakePhiloxKey(1, "mutation"));
  if (bytes.empty()) return bytes;
  // Every second change is near the start, where the headers are.
  const size_t at = r[1] % (r[3] % 2 == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size());
  std::string out = bytes;
  switch (r[0] % 5) {
    case 0:
      return out.substr(0, at);
    case 1:
      out[at] = static_cast<char>(out[at] ^ static_cast<char>(1u << (r[2] % 8)));
      return out;
    case 2:
      out[at] = static_cast<char>(r[2]);
      return out;
    case 3:
      return out.insert(at, RandomBytes(1 + r[2] % 9, n));
    default:
      return out.erase(at, 1 + r[2] % 9);
  }
}

}  // namespace penstock::data
