// src/tokenizer/bpe/regex.h
//
// A regular expression over UTF-8 text (PCRE2, compiled to machine code where it can), with the meaning that the
// pre-tokenizers of tokenizer.json have: Unicode classes, \s is White_Space. Bytes that are not UTF-8 match nothing.
// Threads: Find from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::tokenizer {

class Regex {
 public:
  // UserError for an expression that PCRE2 does not accept, with the place.
  explicit Regex(const std::string& expression);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // The first match that starts at `from` or after: [begin, end). UserError when matching is given up (an expression
  // that backtracks without bound).
  std::optional<std::pair<size_t, size_t>> Find(std::string_view text, size_t from) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
  std::string expression_;
};

}  // namespace penstock::tokenizer
