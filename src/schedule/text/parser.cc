// src/schedule/text/parser.cc
//
// From the first line to the last.
#include "schedule/text/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace penstock::schedule::text {

Parser::Parser(std::string_view text, std::string_view source) : text_(text), source_(source), groups_(s_.groups) {
  s_.name = "hand-written";
}

Schedule Parser::Run() {
  size_t at = 0;
  while (at < text_.size()) {
    const size_t end = std::min(text_.find('\n', at), text_.size());
    ++line_;
    Tokenize(text_.substr(at, end - at));
    if (!words_.empty()) ParseLine();
    at = end + 1;
  }
  if (!seen_magic_) Fail("there is nothing in it; a schedule starts with the line '{} {}'", kMagic, kVersion);
  Finish();
  return std::move(s_);
}

void Parser::ParseLine() {
  if (!seen_magic_) return ParseMagic();
  const std::string_view word = words_[0];
  if (word == "rank") return ParseRank();
  if (!s_.ranks.empty()) return ParseActionLine();
  next_ = 1;
  ParseHeader(word);
  ExpectEnd();
}

void Parser::FailAt(int line, const std::string& message) const {
  throw UserError(fmt::format("{}:{}: {}", source_, line, message));
}

}  // namespace penstock::schedule::text
