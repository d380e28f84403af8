// src/schedule/text/tokens.cc
//
// Splits a line into words, and reads one word as a number, a text, a unit, a group or an action.
#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/nearest.h"
#include "schedule/text/parser.h"

namespace penstock::schedule::text {

std::string Show(std::string_view word) {
  const std::string quoted = Quote(word.substr(0, 40));
  return fmt::format("'{}{}'", std::string_view(quoted).substr(1, quoted.size() - 2), word.size() > 40 ? "..." : "");
}

void Parser::Tokenize(std::string_view line) {
  words_.clear();
  next_ = 0;
  size_t i = 0;
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (i < line.size()) {
    if (blank(line[i])) {
      ++i;
      continue;
    }
    if (line[i] == '#') return;
    const size_t start = i;
    while (i < line.size() && !blank(line[i])) {
      if (line[i] == '"') {
        for (++i; i < line.size() && line[i] != '"'; ++i)
          if (line[i] == '\\') ++i;
        if (i >= line.size()) Fail("a string starts with \" and does not end on this line");
      }
      ++i;
    }
    words_.push_back(line.substr(start, i - start));
  }
}

std::string_view Parser::Next(std::string_view what) {
  if (Done()) Fail("{} is missing at the end of the line", what);
  return words_[next_++];
}

void Parser::Expect(std::string_view word) {
  const std::string_view found = Next(word);
  if (found != word) Fail("expected '{}', not {}", word, Show(found));
}

void Parser::ExpectEnd() const {
  if (!Done()) Fail("{} is one word too many", Show(words_[next_]));
}

int64_t Parser::Integer(std::string_view word, std::string_view what, int64_t low, int64_t high) const {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < low || value > high)
    Fail("{} {} is not an integer in {}..{}", what, Show(word), low, high);
  return value;
}

std::string Parser::Text(std::string_view word, std::string_view what) const {
  if (word.front() != '"') return std::string(word);
  const auto raw = Unquote(word);
  if (!raw) Fail("{} {} is not a string in double quotes (escapes: \\\" \\\\ \\n \\r \\t \\xHH)", what, Show(word));
  return *raw;
}

std::pair<std::string_view, std::string_view> Parser::SplitAt(std::string_view word, char separator) const {
  const size_t at = word.find(separator);
  if (at == std::string_view::npos) return {word, {}};
  return {word.substr(0, at), word.substr(at + 1)};
}

Unit Parser::ParseUnit(std::string_view word) const {
  Unit unit;
  if (word[0] == 'c') {
    const size_t slash = word.find('/');
    if (slash == std::string_view::npos) Fail("unit {} is not STAGE or cCOMPONENT/STAGE", Show(word));
    unit.component = static_cast<uint8_t>(Integer(word.substr(1, slash - 1), "component", 0, 255));
    word.remove_prefix(slash + 1);
  }
  unit.stage = static_cast<uint16_t>(Integer(word, "stage", 0, kMaxStages));
  return unit;
}

int32_t Parser::ParseGroupIndex(std::string_view word) const {
  if (groups_.size() == 0) Fail("group {} is named, but there is no 'group' line before this one", Show(word));
  return static_cast<int32_t>(Integer(word, "group", 0, groups_.size() - 1));
}

ActionRef Parser::ParseRef(std::string_view word) const {
  const auto [rank, index] = SplitAt(word, ':');
  return {static_cast<int32_t>(Integer(rank, "rank", 0, kMaxRanks - 1)),
          static_cast<int32_t>(Integer(index, "index of an action", 0, std::numeric_limits<int32_t>::max()))};
}

std::vector<int32_t> Parser::GroupRanks(std::vector<int32_t> ranks) const {
  for (size_t i = 1; i < ranks.size(); ++i)
    if (ranks[i - 1] >= ranks[i]) Fail("ranks of a group ascend, each once; {} follows {}", ranks[i], ranks[i - 1]);
  return ranks;
}

std::string Parser::Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  return DidYouMean(word.substr(0, 40), candidates);
}

}  // namespace penstock::schedule::text
