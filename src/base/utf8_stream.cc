#include "base/utf8_stream.h"

#include <algorithm>

#include "base/utf8.h"

namespace penstock {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// How many bytes at the front of `text`, which starts with no whole character, could be the beginning of one: at least
// 1. `open` is set when all of `text` is such a beginning, and more of it may come.
size_t Subpart(std::string_view text, bool& open) {
  // A beginning is right when some continuation makes it a character; a lowest and a highest one are enough to try.
  const auto possible = [](std::string_view begin) {
    for (const char* rest : {"\x80\x80\x80", "\xBF\xBF\xBF"}) {
      const std::string whole = std::string(begin) + rest;
      if (Utf8Length(whole) > begin.size()) return true;
    }
    return false;
  };
  size_t n = 0;
  while (n < std::min<size_t>(text.size(), 3) && possible(text.substr(0, n + 1))) ++n;
  open = n == text.size();
  return std::max<size_t>(n, 1);
}

}  // namespace

std::string Utf8Stream::Push(std::string_view bytes) {
  const std::string all = held_ + std::string(bytes);
  held_.clear();
  std::string out;
  for (std::string_view rest = all; !rest.empty();) {
    if (const size_t n = Utf8Length(rest); n > 0) {
      out += rest.substr(0, n);
      rest.remove_prefix(n);
      continue;
    }
    bool open = false;
    const size_t n = Subpart(rest, open);
    if (open) {
      held_ = rest;
      break;
    }
    out += kReplacement;
    rest.remove_prefix(n);
  }
  return out;
}

std::string Utf8Stream::Finish() {
  const bool cut = !held_.empty();
  held_.clear();
  return cut ? std::string(kReplacement) : std::string();
}

std::string ToValidUtf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.Push(bytes);
  return text + stream.Finish();
}

}  // namespace penstock
