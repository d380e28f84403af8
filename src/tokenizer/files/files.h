// src/tokenizer/files/files.h
//
// The formats of tokenizers. UserError with the file, what is wrong in it, and what would work; a part of a format that
// is not supported is refused by its name, never passed over.
#pragma once

#include <memory>
#include <string>

#include "tokenizer/files/settings.h"
#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {

// Hugging Face's tokenizer.json with a model of type BPE.
std::shared_ptr<const Tokenizer> ReadTokenizerJson(const std::string& path, const TokenizerSettings& settings);

// GPT-2's pair of files: the ids of the tokens, and the merges in order ("encoder.json" and "vocab.bpe" in its first
// publication).
std::shared_ptr<const Tokenizer> ReadGpt2Files(const std::string& vocabulary_path, const std::string& merges_path,
                                               const TokenizerSettings& settings);

// SentencePiece's model file (unigram, BPE, words or characters), by its library.
std::shared_ptr<const Tokenizer> ReadSentencePiece(const std::string& path, const TokenizerSettings& settings);

}  // namespace penstock::tokenizer
