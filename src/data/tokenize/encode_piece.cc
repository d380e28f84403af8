#include "data/tokenize/encode_piece.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "data/token_file.h"

namespace penstock::data {
namespace {

using Json = nlohmann::json;

// Keeps one field of the outer object and nothing else, however deep and large the rest is.
class FieldReader : public nlohmann::json_sax<Json> {
 public:
  explicit FieldReader(const std::string& field) : field_(field) {}

  std::optional<std::string> text;
  bool is_object = false;
  bool other_type = false;
  std::string fault;

  bool null() override { return Other(); }
  bool boolean(bool) override { return Other(); }
  bool number_integer(number_integer_t) override { return Other(); }
  bool number_unsigned(number_unsigned_t) override { return Other(); }
  bool number_float(number_float_t, const string_t&) override { return Other(); }
  bool binary(binary_t&) override { return Other(); }
  bool string(string_t& value) override {
    if (wanted_ && depth_ == 1) text = std::move(value);
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ == 0) is_object = true;
    return Enter();
  }
  bool start_array(size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }
  bool key(string_t& name) override {
    if (depth_ == 1) wanted_ = name == field_;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    fault = error.what();
    return false;
  }

 private:
  bool Other() {
    other_type = other_type || (wanted_ && depth_ == 1);
    return true;
  }
  bool Enter() {
    Other();
    ++depth_;
    return true;
  }
  bool Leave() {
    --depth_;
    return true;
  }

  const std::string& field_;
  int depth_ = 0;
  bool wanted_ = false;
};

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

std::string TextOfLine(std::string_view line, const std::string& field, const std::string& where) {
  FieldReader reader(field);
  Json::sax_parse(line, &reader);
  if (!reader.fault.empty()) throw UserError("{}: no JSON: {}", where, reader.fault);
  if (!reader.is_object) throw UserError("{}: no JSON object; every line is one, with the text in '{}'", where, field);
  if (!reader.text)
    throw UserError("{}: '{}' {}; --jsonl-field names the field with the text", where, field,
                    reader.other_type ? "is no text" : "is not there");
  return std::move(*reader.text);
}

EncodedPiece EncodePiece(const TextPiece& piece, const std::vector<TextFile>& files, const EncodeOptions& options,
                         const tokenizer::Tokenizer& tokenizer) {
  Encoder encoder(options, tokenizer);
  for (const TextPiece::Segment& segment : piece.segments) {
    const TextFile& file = files[static_cast<size_t>(segment.file)];
    std::string_view text = std::string_view(piece.text).substr(segment.begin, segment.end - segment.begin);
    if (!segment.json) {
      encoder.Add(text, file.name, segment.document, segment.ends);
      continue;
    }
    for (int64_t line = segment.document; !text.empty(); ++line) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view one = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      std::string document;
      try {
        document = TextOfLine(one, options.jsonl_field, fmt::format("'{}' line {}", file.path, line + 1));
      } catch (const UserError& error) {
        if (!options.skip_malformed) throw;
        if (++encoder.out.malformed_lines <= 3) encoder.out.faults.emplace_back(error.what());
        continue;
      }
      if (document.empty())
        ++encoder.out.empty_documents;
      else
        encoder.Add(document, file.name, line, /*ends=*/true);
    }
  }
  encoder.out.after = piece.after;
  return std::move(encoder.out);
}

}  // namespace penstock::data
