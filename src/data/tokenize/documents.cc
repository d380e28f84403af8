#include "data/tokenize/documents.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"

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

  std::string field_;
  int depth_ = 0;
  bool wanted_ = false;
};

// Halves of surrogate pairs that stand alone, as Python writes them for text that is no Unicode, as the character for
// what is none. `line` is JSON or nearly so: the escapes are those after an even number of backslashes.
std::string WithoutLoneSurrogates(std::string_view line) {
  std::string mended(line);
  // The code unit of an escape at `at`, or -1.
  const auto unit = [&](size_t at) -> int {
    if (at + 6 > mended.size() || mended[at] != '\\' || mended[at + 1] != 'u') return -1;
    int value = 0;
    const char* const end = mended.data() + at + 6;
    const auto [parsed, error] = std::from_chars(mended.data() + at + 2, end, value, 16);
    return error == std::errc() && parsed == end ? value : -1;
  };
  for (size_t at = 0; at < mended.size(); ++at) {
    if (mended[at] != '\\') continue;
    const int first = unit(at);
    if (first >= 0xD800 && first < 0xDC00) {
      const int second = unit(at + 6);
      if (second >= 0xDC00 && second < 0xE000)
        at += 6;  // a pair
      else
        mended.replace(at, 6, "\\ufffd");
    } else if (first >= 0xDC00 && first < 0xE000) {
      mended.replace(at, 6, "\\ufffd");
    }
    at += first < 0 ? 1 : 5;
  }
  return mended;
}

}  // namespace

std::string TextOfLine(std::string_view line, const std::string& field, const std::string& where) {
  FieldReader reader(field);
  if (!Json::sax_parse(line, &reader) && line.find("\\u") != std::string_view::npos) {
    reader = FieldReader(field);
    Json::sax_parse(WithoutLoneSurrogates(line), &reader);
  }
  if (!reader.fault.empty()) throw UserError("{}: no JSON: {}", where, reader.fault);
  if (!reader.is_object) throw UserError("{}: no JSON object; every line is one, with the text in '{}'", where, field);
  if (!reader.text)
    throw UserError("{}: '{}' {}; --jsonl-field names the field with the text", where, field,
                    reader.other_type ? "is no text" : "is not there");
  return std::move(*reader.text);
}

LeftOut VisitDocuments(const TextPiece& piece, const std::vector<TextFile>& files, const DocumentOptions& options,
                       const VisitText& visit) {
  LeftOut left_out;
  left_out.empty_documents = piece.empty_documents;
  for (const TextPiece::Segment& segment : piece.segments) {
    const TextFile& file = files[static_cast<size_t>(segment.file)];
    std::string_view text = std::string_view(piece.text).substr(segment.begin, segment.end - segment.begin);
    if (!segment.json) {
      visit(text, file, segment.document, segment.ends);
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
        if (++left_out.malformed_lines <= 3) left_out.faults.emplace_back(error.what());
        continue;
      }
      if (document.empty())
        ++left_out.empty_documents;
      else
        visit(document, file, line, /*ends=*/true);
    }
  }
  return left_out;
}

}  // namespace penstock::data
