// src/tokenizer/tokenizer.h
//
// Text to token ids and back. Text is bytes of any kind; where an algorithm needs characters, it says what it does with
// bytes that are not UTF-8.
//
// Lossless tokenizers (bytes, byte-level BPE without a normalizer) give Decode(Encode(x)) == x for any bytes. Text is
// never turned into a special id by Encode, whatever it looks like.
// Threads: immutable after construction; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::tokenizer {

// A file to be written beside a checkpoint, so that LoadTokenizer of that folder gives this tokenizer again.
struct TokenizerFile {
  std::string name;  // without folder
  std::string content;
};

struct SpecialToken {
  int32_t id = 0;
  std::string text;
};

// A part of a tokenizer for people: "normalizer", "NFC".
struct TokenizerPart {
  std::string name, what;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // For people and records: "bytes", or the kind and the file it came from.
  virtual std::string name() const = 0;
  // Ids are in [0, vocabulary).
  virtual int32_t vocabulary() const = 0;
  // The id put between documents of a corpus.
  virtual int32_t end_of_document() const = 0;
  // Set where sequences of this tokenizer start with a token (Llama's <s>); not added by Encode.
  virtual std::optional<int32_t> beginning_of_text() const { return std::nullopt; }
  virtual bool lossless() const = 0;
  // Equal fingerprints mean equal ids for all text.
  virtual std::string Fingerprint() const = 0;

  virtual std::vector<int32_t> Encode(std::string_view text) const = 0;
  // The same, appended, and with the texts of special tokens recognised and turned into their ids.
  virtual std::vector<int32_t> EncodeWithSpecials(std::string_view text) const { return Encode(text); }
  // UserError for an id outside the vocabulary. Special ids give their text.
  virtual std::string Decode(std::span<const int32_t> ids) const = 0;

  // What is written for one token in the vocabulary; of byte-level ones the bytes it stands for. Decode of several is
  // not always these texts in a row (SentencePiece). UserError for an id outside the vocabulary.
  virtual std::string TokenText(int32_t id) const { return Decode({&id, 1}); }

  // Kind and steps, in the order they are applied to a text.
  virtual std::vector<TokenizerPart> Describe() const { return {{"kind", name()}}; }

  virtual std::vector<SpecialToken> special_tokens() const { return {}; }
  // Empty for tokenizers that need no file.
  virtual std::vector<TokenizerFile> files() const { return {}; }
  // May a long text be encoded in parts? True when it may be cut after every '\n' that stands alone, that is, between
  // two characters that are no white space: the parts' ids are those of the whole.
  virtual bool CutsAtLines() const { return false; }
  // And between an ASCII letter and a space that another one follows?
  virtual bool CutsAtWords() const { return false; }
};

// One id per byte, vocabulary 256. The end of a document is id 0: text has no NUL byte (corpora with one are refused
// as binary), so no id of the vocabulary is wasted or added.
class ByteTokenizer : public Tokenizer {
 public:
  std::string name() const override { return "bytes"; }
  int32_t vocabulary() const override { return 256; }
  int32_t end_of_document() const override { return 0; }
  bool lossless() const override { return true; }
  std::string Fingerprint() const override { return "bytes"; }
  std::vector<int32_t> Encode(std::string_view text) const override;
  std::string Decode(std::span<const int32_t> ids) const override;
  std::vector<TokenizerPart> Describe() const override { return {{"kind", "bytes: one token each"}}; }
  bool CutsAtLines() const override { return true; }
  bool CutsAtWords() const override { return true; }
};

// `name` is "bytes", or the path of a tokenizer: a file or a folder with one. UserError when there is none or it cannot
// be read, with what would work.
std::shared_ptr<const Tokenizer> LoadTokenizer(const std::string& name);

}  // namespace penstock::tokenizer
