// src/tokenizer/bpe/decode.h
//
// From the texts of tokens back to text.
// Threads: immutable after construction.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace penstock::tokenizer {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Texts of tokens, in order; their concatenation after the last step is the text.
  virtual void Apply(std::vector<std::string>& tokens) const = 0;
};

std::unique_ptr<Decoder> MakeReplaceDecoder(std::string from, std::string to);
std::unique_ptr<Decoder> MakeByteFallbackDecoder();  // "<0xE2>" becomes its byte
std::unique_ptr<Decoder> MakeFuseDecoder();          // all tokens become one
// Up to `start` times `content` is taken off the front of every token, `stop` times off the back.
std::unique_ptr<Decoder> MakeStripDecoder(std::string content, int start, int stop);
// `replacement` becomes a space; that of the first token is left out unless `keep_first`.
std::unique_ptr<Decoder> MakeMetaspaceDecoder(std::string replacement, bool keep_first);
std::unique_ptr<Decoder> MakeSequence(std::vector<std::unique_ptr<Decoder>> steps);

// "<0xE2>" -> 0xE2, else -1.
int ByteOfToken(const std::string& token);

}  // namespace penstock::tokenizer
