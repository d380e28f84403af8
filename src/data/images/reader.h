// src/data/images/reader.h
//
// What the readers of the formats share. A reader takes the path that the user gave and answers with its parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/images.h"

namespace penstock::data::images {

// No picture has a longer side, and none more pixels: what a header may make us allocate.
inline constexpr int64_t kMaxSide = 16384;
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;

// What there is under a path, to recognise a format by.
struct Place {
  std::string path;
  bool is_folder = false;
  std::vector<std::string> files;    // of a folder, ascending; without hidden ones
  std::vector<std::string> folders;  // likewise
  std::string first_bytes;           // of a file, decompressed; 16 at most
  int64_t bytes = 0;                 // of a file, as it is on disk

  bool HasFile(const std::string& name) const;
  std::string File(const std::string& name) const { return path + "/" + name; }
};
// UserError when it is neither a file nor a folder.
Place LookAt(const std::string& path);

// Counts what is kept in memory.
class Budget {
 public:
  explicit Budget(int64_t max_bytes) : max_(max_bytes) {}
  // UserError, naming the file, when `bytes` more are too much.
  void Take(int64_t bytes, const std::string& path);

 private:
  int64_t max_;
  int64_t taken_ = 0;
};

// Pictures as they are read; a part once the classes of all parts are known.
struct Pictures {
  std::string part;
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
};

bool EndsWith(const std::string& text, const std::string& end);

// A reader of each format. `Recognises...` looks at names, sizes and magic numbers only.
bool RecognisesMnist(const Place& place);
ImageData ReadMnist(const Place& place, const ImageOptions& options);
bool RecognisesCifar10(const Place& place);
ImageData ReadCifar10(const Place& place, const ImageOptions& options);
bool RecognisesCifar100(const Place& place);
ImageData ReadCifar100(const Place& place, const ImageOptions& options);
bool RecognisesDigits(const Place& place);
ImageData ReadDigits(const Place& place, const ImageOptions& options);
bool RecognisesFolder(const Place& place);
ImageData ReadFolder(const Place& place, const ImageOptions& options);

}  // namespace penstock::data::images
