#include "data/tokenize/encode_piece.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/hash.h"
#include "data/token_file.h"

namespace penstock::data {
namespace {

class Encoder {
 public:
  Encoder(const EncodeOptions& options, const tokenizer::Tokenizer& tokenizer)
      : options_(options), tokenizer_(tokenizer), width_(TokenWidth(tokenizer.vocabulary())) {}

  void Add(std::string_view text, std::string_view file, int64_t document, bool ends) {
    EncodedPiece::Stream& stream = out.streams[IsHeldBack(options_, file, document) ? 1 : 0];
    const std::vector<int32_t> ids = tokenizer_.Encode(text);
    stream.bytes.reserve(std::max(stream.bytes.capacity(), stream.bytes.size() + (ids.size() + 1) * width_bytes()));
    for (const int32_t id : ids) Put(stream, id);
    out.text_bytes += static_cast<int64_t>(text.size());
    if (!ends) return;
    Put(stream, tokenizer_.end_of_document());
    stream.ends.push_back(static_cast<int64_t>(stream.bytes.size()) / width_);
  }

  EncodedPiece out;

 private:
  void Put(EncodedPiece::Stream& stream, int32_t id) const {
    PENSTOCK_CHECK(id >= 0 && id < tokenizer_.vocabulary(), "token id {} outside [0, {})", id, tokenizer_.vocabulary());
    const auto bits = static_cast<uint32_t>(id);
    const std::array<char, 4> bytes = {static_cast<char>(bits), static_cast<char>(bits >> 8),
                                       static_cast<char>(bits >> 16), static_cast<char>(bits >> 24)};
    stream.bytes.append(bytes.data(), width_bytes());
  }
  size_t width_bytes() const { return static_cast<size_t>(width_); }

  const EncodeOptions& options_;
  const tokenizer::Tokenizer& tokenizer_;
  const int32_t width_;
};

}  // namespace

bool IsHeldBack(const EncodeOptions& options, std::string_view file, int64_t index) {
  if (options.validation <= 0) return false;
  const Hash128 hash =
      Hasher().Update(options.validation_seed).Update(file).Update(static_cast<uint64_t>(index)).Digest();
  return static_cast<double>(hash.high) * 0x1p-64 < options.validation;
}

EncodedPiece EncodePiece(const TextPiece& piece, const std::vector<TextFile>& files, const EncodeOptions& options,
                         const tokenizer::Tokenizer& tokenizer) {
  Encoder encoder(options, tokenizer);
  encoder.out.left_out = VisitDocuments(piece, files, options.documents,
                                        [&](std::string_view text, const TextFile& file, int64_t index, bool ends) {
                                          encoder.Add(text, file.name, index, ends);
                                        });
  encoder.out.after = piece.after;
  return std::move(encoder.out);
}

}  // namespace penstock::data
