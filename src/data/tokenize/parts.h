// src/data/tokenize/parts.h
//
// What a tokenization has done so far, in a folder: journal.json says what is being done, and part N is
//
//   part-N.train, part-N.validation             tokens, as in the token file
//   part-N.train.ends, part-N.validation.ends   document ends, 8 bytes each, counted over all parts
//   part-N.json                                 where reading stands after it, totals, hashes of the four files and of
//   itself
//
// The record is written last and atomically: a part without one, or with one that does not fit its files, is not there.
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/hash.h"
#include "data/token_file.h"
#include "data/tokenize/encode_piece.h"

namespace penstock::data {

struct TokenizeTotals {
  std::array<int64_t, 2> documents{}, tokens{};
  int64_t text_bytes = 0, empty_documents = 0, malformed_lines = 0;
};

class TokenizeParts {
 public:
  // Finds the finished parts in `folder`, which need not be there.
  TokenizeParts(std::string folder, int32_t token_width, FileSystem& files);

  // After the last finished part.
  const TextPosition& position() const { return position_; }
  const TokenizeTotals& totals() const { return totals_; }
  int64_t parts() const { return parts_; }

  // Adds to the part under way; CloseOne finishes it.
  void Append(const EncodedPiece& piece);
  int64_t open_bytes() const { return open_ ? open_bytes_ : 0; }  // of the input in the part under way
  void CloseOne();

  // Writes stream 0 (train) or 1 of all finished parts. `progress` is told of the bytes. When a part is damaged it and
  // the ones after it are removed: WorldError.
  void WriteTokens(int stream, TokenFileWriter& writer, const std::function<void(int64_t)>& progress);
  int64_t bytes_of_files() const;

 private:
  static constexpr int kFiles = 4;  // tokens of both streams, then ends of both
  struct Open {
    std::array<std::unique_ptr<WritableFile>, kFiles> file;
    std::array<Hasher, kFiles> hash;
  };
  std::string NameOf(int64_t part, int file) const;
  std::string RecordOf(int64_t part) const;
  bool ReadRecord(int64_t part);
  [[noreturn]] void RefusePart(int64_t part, const std::string& file);

  std::string folder_;
  int32_t width_;
  FileSystem& files_;
  int64_t parts_ = 0;
  TextPosition position_, open_position_;
  TokenizeTotals totals_, open_totals_;
  std::unique_ptr<Open> open_;
  int64_t open_bytes_ = 0;
};

}  // namespace penstock::data
