#include <sentencepiece_processor.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "tokenizer/bpe/decode.h"
#include "tokenizer/files/files.h"

namespace penstock::tokenizer {
namespace {

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& path, const TokenizerSettings& settings)
      : path_(path), model_(ReadFile(path)), files_(settings.files) {
    const auto status = processor_.LoadFromSerializedProto(model_);
    if (!status.ok()) throw UserError("{} is no model of SentencePiece: {}", path, status.ToString());
    vocabulary_ = processor_.GetPieceSize();
    end_ = settings.end_of_text ? Find(*settings.end_of_text) : -1;
    if (end_ < 0) end_ = processor_.eos_id();
    if (end_ < 0) end_ = vocabulary_++;
    if (settings.add_beginning.value_or(processor_.bos_id() >= 0) && processor_.bos_id() >= 0)
      bos_ = processor_.bos_id();
    fingerprint_ = "sentencepiece-" + Hasher().Update(model_).Update(static_cast<uint64_t>(end_)).Digest().Hex();
    const std::string name = path.substr(path.find_last_of('/') + 1);
    files_.push_back({name == "spiece.model" ? name : "tokenizer.model", model_});
  }

  std::string name() const override { return "SentencePiece of " + path_; }
  int32_t vocabulary() const override { return vocabulary_; }
  int32_t end_of_document() const override { return end_; }
  std::optional<int32_t> beginning_of_text() const override { return bos_; }
  bool lossless() const override { return false; }  // it normalizes, and puts a space before a text
  std::string Fingerprint() const override { return fingerprint_; }

  std::vector<int32_t> Encode(std::string_view text) const override {
    std::vector<int> ids;
    const auto status = processor_.Encode(text, &ids);
    PENSTOCK_CHECK(status.ok(), "SentencePiece: {}", status.ToString());
    return {ids.begin(), ids.end()};
  }
  std::vector<int32_t> EncodeWithSpecials(std::string_view text) const override {
    std::vector<int32_t> ids;
    while (!text.empty()) {
      size_t at = std::string_view::npos;
      SpecialToken found;
      for (const SpecialToken& token : special_tokens()) {
        const size_t place = text.find(token.text);
        if (place < at || (place == at && place != std::string_view::npos && token.text.size() > found.text.size())) {
          at = place;
          found = token;
        }
      }
      if (at > 0) {
        const std::vector<int32_t> before = Encode(text.substr(0, at));
        ids.insert(ids.end(), before.begin(), before.end());
      }
      if (at == std::string_view::npos) break;
      ids.push_back(found.id);
      text.remove_prefix(at + found.text.size());
    }
    return ids;
  }
  std::string Decode(std::span<const int32_t> ids) const override {
    std::vector<int> known;
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocabulary_)
        throw UserError("token id {} is outside the vocabulary [0, {}) of {}", id, vocabulary_, name());
      if (id < processor_.GetPieceSize()) known.push_back(id);
    }
    std::string text;
    if (std::none_of(known.begin(), known.end(), [&](int id) { return processor_.IsByte(id); })) {
      const auto status = processor_.Decode(known, &text);
      PENSTOCK_CHECK(status.ok(), "SentencePiece: {}", status.ToString());
      return text;
    }
    // The library makes U+FFFD of every byte that completes no character, also of one whose rest may come yet. Bytes
    // stay bytes here; the rest is as the library has it at its place.
    const sentencepiece::ImmutableSentencePieceText decoded = processor_.DecodeIdsAsImmutableProto(known);
    PENSTOCK_CHECK(decoded.pieces_size() == known.size(), "SentencePiece: {} pieces of {} ids", decoded.pieces_size(),
                   known.size());
    for (size_t i = 0; i < known.size(); ++i) {
      const int byte = processor_.IsByte(known[i]) ? ByteOfToken(processor_.IdToPiece(known[i])) : -1;
      if (byte >= 0)
        text += static_cast<char>(byte);
      else
        text += decoded.pieces(static_cast<int>(i)).surface();
    }
    return text;
  }
  std::string TokenText(int32_t id) const override {
    if (id < 0 || id >= vocabulary_)
      throw UserError("token id {} is outside the vocabulary [0, {}) of {}", id, vocabulary_, name());
    return id < processor_.GetPieceSize() ? processor_.IdToPiece(id) : std::string();
  }
  std::vector<TokenizerPart> Describe() const override {
    return {{"kind", "SentencePiece, by its library"},
            {"steps", "as the model file says; spaces are spelled \xE2\x96\x81"}};
  }
  std::vector<SpecialToken> special_tokens() const override {
    std::vector<SpecialToken> tokens;
    for (int id = 0; id < processor_.GetPieceSize(); ++id)
      if (processor_.IsControl(id)) tokens.push_back({id, processor_.IdToPiece(id)});
    return tokens;
  }
  std::vector<TokenizerFile> files() const override { return files_; }

 private:
  int32_t Find(const std::string& piece) const {
    const int id = processor_.PieceToId(piece);
    return id == processor_.unk_id() ? -1 : id;
  }

  std::string path_, model_, fingerprint_;
  std::vector<TokenizerFile> files_;
  sentencepiece::SentencePieceProcessor processor_;
  int32_t vocabulary_ = 0, end_ = -1;
  std::optional<int32_t> bos_;
};

}  // namespace

std::shared_ptr<const Tokenizer> ReadSentencePiece(const std::string& path, const TokenizerSettings& settings) {
  return std::make_shared<SentencePieceTokenizer>(path, settings);
}

}  // namespace penstock::tokenizer
