#include "tokenizer/bpe/normalize.h"

#include <utf8proc.h>

#include <cstdlib>

#include "base/error.h"
#include "tokenizer/bpe/unicode.h"

namespace penstock::tokenizer {
namespace {

bool IsAscii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

// Calls `valid` with every stretch of UTF-8 and copies the bytes between them.
template <typename Valid>
std::string ByStretches(std::string_view text, Valid valid) {
  std::string out;
  while (!text.empty()) {
    size_t n = 0;
    while (n < text.size()) {
      const size_t length = Utf8Length(text.substr(n));
      if (length == 0) break;
      n += length;
    }
    if (n > 0) valid(text.substr(0, n), out);
    text.remove_prefix(n);
    if (!text.empty()) {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

struct Unicode : Normalizer {
  explicit Unicode(UnicodeForm form) : form(form) {}
  std::string Apply(std::string text) const override {
    if (IsAscii(text)) return text;
    const bool compose = form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
    const bool compatible = form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
    const auto options = static_cast<utf8proc_option_t>(
        UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compatible ? UTF8PROC_COMPAT : 0));
    const auto map = [&](std::string_view valid, std::string& out) {
      utf8proc_uint8_t* result = nullptr;
      const utf8proc_ssize_t n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                              static_cast<utf8proc_ssize_t>(valid.size()), &result, options);
      PENSTOCK_CHECK(n >= 0, "utf8proc: {}", utf8proc_errmsg(n));
      out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(n));
      std::free(result);
    };
    // utf8proc before 2.9 swallows U+11A7 after a Hangul syllable as if it were a final consonant. It composes with
    // nothing and nothing is reordered across it, so what starts with it is normalized for itself.
    return ByStretches(text, [&](std::string_view valid, std::string& out) {
      for (size_t next; (next = valid.find("\xE1\x86\xA7", 1)) != std::string_view::npos; valid.remove_prefix(next))
        map(valid.substr(0, next), out);
      map(valid, out);
    });
  }
  UnicodeForm form;
};

// Calls `each` with every character and its bytes.
template <typename Each>
std::string ByCharacters(std::string_view text, Each each) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = FrontCharacter(text);
    each(c.code, text.substr(0, c.length), out);
    text.remove_prefix(c.length);
  }
  return out;
}

struct Lowercase : Normalizer {
  std::string Apply(std::string text) const override {
    return ByCharacters(text, [](uint32_t code, std::string_view bytes, std::string& out) {
      if (code == kNoCharacter)
        out += bytes;
      else if (code == 0x130)
        out += "i\xCC\x87";  // the one character whose lower case is two (SpecialCasing)
      else
        AppendUtf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
    });
  }
};

struct StripAccents : Normalizer {
  std::string Apply(std::string text) const override {
    return ByCharacters(text, [](uint32_t code, std::string_view bytes, std::string& out) {
      const bool mark = code != kNoCharacter && (CharacterClasses()[code] & kMark) != 0;
      if (!mark) out += bytes;
    });
  }
};

struct Strip : Normalizer {
  Strip(bool left, bool right) : left(left), right(right) {}
  std::string Apply(std::string text) const override {
    std::string_view rest = text;
    const auto space = [](Character c) { return (ClassOf(CharacterClasses(), c.code) & kSpace) != 0; };
    while (left && !rest.empty() && space(FrontCharacter(rest))) rest.remove_prefix(FrontCharacter(rest).length);
    while (right && !rest.empty() && space(BackCharacter(rest))) rest.remove_suffix(BackCharacter(rest).length);
    return std::string(rest);
  }
  bool left, right;
};

struct Prepend : Normalizer {
  explicit Prepend(std::string prefix) : prefix(std::move(prefix)) {}
  std::string Apply(std::string text) const override { return text.empty() ? text : prefix + text; }
  std::string prefix;
};

struct Replace : Normalizer {
  Replace(std::string from, std::string to) : from(std::move(from)), to(std::move(to)) {}
  std::string Apply(std::string text) const override { return ReplaceAll(text, from, to); }
  std::string from, to;
};

struct ReplaceRegex : Normalizer {
  ReplaceRegex(std::unique_ptr<Regex> from, std::string to) : from(std::move(from)), to(std::move(to)) {}
  std::string Apply(std::string text) const override {
    std::string out;
    size_t done = 0, at = 0;
    while (at <= text.size()) {
      const auto found = from->Find(text, at);
      if (!found) break;
      out.append(text, done, found->first - done);
      out += to;
      done = found->second;
      at = found->second > found->first ? found->second : found->second + 1;
    }
    return out.append(text, done, std::string::npos);
  }
  std::unique_ptr<Regex> from;
  std::string to;
};

struct Sequence : Normalizer {
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps(std::move(steps)) {}
  std::string Apply(std::string text) const override {
    for (const auto& step : steps) text = step->Apply(std::move(text));
    return text;
  }
  std::vector<std::unique_ptr<Normalizer>> steps;
};

}  // namespace

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  if (from.empty()) return std::string(text);
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found == std::string_view::npos ? found : found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

std::unique_ptr<Normalizer> MakeUnicodeNormalizer(UnicodeForm form) { return std::make_unique<Unicode>(form); }
std::unique_ptr<Normalizer> MakeLowercase() { return std::make_unique<Lowercase>(); }
std::unique_ptr<Normalizer> MakeStripAccents() { return std::make_unique<StripAccents>(); }
std::unique_ptr<Normalizer> MakeStrip(bool left, bool right) { return std::make_unique<Strip>(left, right); }
std::unique_ptr<Normalizer> MakePrepend(std::string text) { return std::make_unique<Prepend>(std::move(text)); }
std::unique_ptr<Normalizer> MakeReplace(std::string from, std::string to) {
  return std::make_unique<Replace>(std::move(from), std::move(to));
}
std::unique_ptr<Normalizer> MakeReplaceRegex(std::unique_ptr<Regex> from, std::string to) {
  return std::make_unique<ReplaceRegex>(std::move(from), std::move(to));
}
std::unique_ptr<Normalizer> MakeSequence(std::vector<std::unique_ptr<Normalizer>> steps) {
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace penstock::tokenizer
