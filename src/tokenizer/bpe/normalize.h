// src/tokenizer/bpe/normalize.h
//
// What is done to a text before it is cut in pieces. Bytes that are not UTF-8 stay as they are.
// Threads: immutable after construction.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/regex.h"

namespace penstock::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string Apply(std::string text) const = 0;
};

// Unicode normalization forms C, D, KC and KD (UAX #15), by utf8proc.
enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };
std::unique_ptr<Normalizer> MakeUnicodeNormalizer(UnicodeForm form);
std::unique_ptr<Normalizer> MakeLowercase();
std::unique_ptr<Normalizer> MakeStripAccents();  // removes marks (M)
std::unique_ptr<Normalizer> MakeStrip(bool left, bool right);
std::unique_ptr<Normalizer> MakePrepend(std::string text);  // nothing is put before an empty text
std::unique_ptr<Normalizer> MakeReplace(std::string from, std::string to);
std::unique_ptr<Normalizer> MakeReplaceRegex(std::unique_ptr<Regex> from, std::string to);
std::unique_ptr<Normalizer> MakeSequence(std::vector<std::unique_ptr<Normalizer>> steps);

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to);

}  // namespace penstock::tokenizer
