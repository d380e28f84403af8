#include "tokenizer/bpe/scanner.h"

#include "tokenizer/bpe/unicode.h"

namespace penstock::tokenizer {
namespace {

// Where a scan stands: classes of the character there, 0 at the end.
class Cursor {
 public:
  Cursor(std::string_view text, size_t at) : text_(text), at_(at) {}
  bool end() const { return at_ == text_.size(); }
  size_t at() const { return at_; }
  uint8_t Peek() {
    const Character c = FrontCharacter(text_.substr(at_));
    length_ = c.length;
    return ClassOf(classes_, c.code);
  }
  void Next() { at_ += length_; }  // past what Peek saw
  template <typename Wanted>
  bool SkipAll(Wanted wanted) {
    const size_t from = at_;
    while (!end() && wanted(Peek())) Next();
    return at_ > from;
  }

 private:
  std::string_view text_;
  size_t at_;
  uint32_t length_ = 0;
  const uint8_t* classes_ = CharacterClasses();
};

bool IsLetter(uint8_t c) { return (c & kLetter) != 0; }
bool IsNumber(uint8_t c) { return (c & kNumber) != 0; }
bool IsOther(uint8_t c) { return (c & (kLetter | kNumber | kSpace)) == 0; }
bool IsSpace(uint8_t c) { return (c & kSpace) != 0; }
bool IsLineEnd(uint8_t c) { return (c & kLineEnd) != 0; }

// 's 't 'm 'd 're 've 'll: its length, or 0. Folding case, U+017F (long s) is an s.
size_t Contraction(std::string_view text, bool fold) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const auto letter = [&](size_t i) -> char {
    if (i >= text.size()) return '\0';
    const char c = text[i];
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? 3 : 0;
    case 'l':
      return letter(2) == 'l' ? 3 : 0;
    default:
      return fold && text.substr(1, 2) == "\xC5\xBF" ? 3 : 0;
  }
}

// \s+(?!\S)|\s+ : a run of white space, but for its last character where something follows (unless it is the only one).
size_t Spaces(std::string_view text) {
  const uint8_t* classes = CharacterClasses();
  size_t at = 0, last = 0;
  while (at < text.size()) {
    const Character c = FrontCharacter(text.substr(at));
    if (!IsSpace(ClassOf(classes, c.code))) return last > 0 ? last : at;
    last = at;
    at += c.length;
  }
  return at;
}

size_t ScanGpt2(std::string_view text) {
  if (const size_t n = Contraction(text, false)) return n;
  Cursor cursor(text, text[0] == ' ' ? 1 : 0);
  if (!cursor.end()) {
    const uint8_t c = cursor.Peek();
    if (IsLetter(c)) return cursor.SkipAll(IsLetter), cursor.at();
    if (IsNumber(c)) return cursor.SkipAll(IsNumber), cursor.at();
    if (IsOther(c)) return cursor.SkipAll(IsOther), cursor.at();
  }
  return Spaces(text);
}

size_t ScanLlama3(std::string_view text, int digits) {
  if (const size_t n = Contraction(text, true)) return n;
  Cursor cursor(text, 0);
  const uint8_t first = cursor.Peek();
  if (IsLetter(first)) return cursor.SkipAll(IsLetter), cursor.at();
  if (IsNumber(first)) {
    for (int i = 0; i < digits && !cursor.end() && IsNumber(cursor.Peek()); ++i) cursor.Next();
    return cursor.at();
  }
  if (!IsLineEnd(first)) {
    Cursor after = cursor;
    after.Next();
    if (after.SkipAll(IsLetter)) return after.at();
  }
  {
    Cursor other(text, text[0] == ' ' ? 1 : 0);
    if (other.SkipAll(IsOther)) {
      other.SkipAll(IsLineEnd);
      return other.at();
    }
  }
  // \s*[\r\n]+ : up to the last line end of the run of white space.
  size_t after_line_end = 0;
  for (Cursor space(text, 0); !space.end();) {
    const uint8_t c = space.Peek();
    if (!IsSpace(c)) break;
    space.Next();
    if (IsLineEnd(c)) after_line_end = space.at();
  }
  return after_line_end > 0 ? after_line_end : Spaces(text);
}

constexpr std::string_view kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

std::string_view RegexOf(ScanPattern pattern) {
  switch (pattern) {
    case ScanPattern::kGpt2:
      return kGpt2Regex;
    case ScanPattern::kLlama3:
      return kLlama3Regex;
    case ScanPattern::kQwen2:
      return kQwen2Regex;
  }
  return {};
}

std::optional<ScanPattern> FindScanPattern(std::string_view regex) {
  for (const ScanPattern pattern : {ScanPattern::kGpt2, ScanPattern::kLlama3, ScanPattern::kQwen2})
    if (regex == RegexOf(pattern)) return pattern;
  return std::nullopt;
}

size_t ScanPiece(ScanPattern pattern, std::string_view text) {
  switch (pattern) {
    case ScanPattern::kGpt2:
      return ScanGpt2(text);
    case ScanPattern::kLlama3:
      return ScanLlama3(text, 3);
    case ScanPattern::kQwen2:
      return ScanLlama3(text, 1);
  }
  return text.size();
}

}  // namespace penstock::tokenizer
