// src/tokenizer/files/byte_alphabet.h
//
// The alphabet in which files of byte-level tokenizers spell bytes: printable Latin-1 characters stand for themselves,
// the other bytes for U+0100, U+0101, ... in order (GPT-2's encoder.py).
// Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::tokenizer {

std::string ToAlphabet(std::string_view bytes);
// Nothing when there is a character outside the alphabet.
std::optional<std::string> FromAlphabet(std::string_view text);

}  // namespace penstock::tokenizer
