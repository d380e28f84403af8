// src/data/tokenizer.h
//
// Text to token ids and back. Decode(Encode(x)) == x for any bytes; text is never turned into a special id.
// Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string name() const = 0;
  // Ids are in [0, vocabulary).
  virtual int32_t vocabulary() const = 0;
  // The id put between documents of a corpus.
  virtual int32_t end_of_document() const = 0;
  virtual std::vector<int32_t> Encode(std::string_view text) const = 0;
  // UserError for an id outside the vocabulary.
  virtual std::string Decode(std::span<const int32_t> ids) const = 0;
};

// One id per byte, vocabulary 256. The end of a document is id 0: text has no NUL byte (corpora with one are refused
// as binary), so no id of the vocabulary is wasted or added.
class ByteTokenizer : public Tokenizer {
 public:
  std::string name() const override { return "bytes"; }
  int32_t vocabulary() const override { return 256; }
  int32_t end_of_document() const override { return 0; }
  std::vector<int32_t> Encode(std::string_view text) const override;
  std::string Decode(std::span<const int32_t> ids) const override;
};

}  // namespace penstock::data
