// src/tokenizer/bpe/scanner.h
//
// The pre-tokenizer patterns that most published tokenizers use, written out by hand: the same pieces as the regular
// expression gives, without an engine for them.
//
//   kGpt2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   kLlama3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
//            \s+(?!\S)|\s+
//   kQwen2   as kLlama3 with \p{N} in place of \p{N}{1,3}
//
// Bytes that are not UTF-8 count as characters of no class, one each.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace penstock::tokenizer {

enum class ScanPattern { kGpt2, kLlama3, kQwen2 };

// The pattern as a regular expression, and back: nothing for any other expression.
std::string_view RegexOf(ScanPattern pattern);
std::optional<ScanPattern> FindScanPattern(std::string_view regex);

// The length of the first piece of `text`, which is not empty. Every text is all pieces, without gaps.
size_t ScanPiece(ScanPattern pattern, std::string_view text);

}  // namespace penstock::tokenizer
