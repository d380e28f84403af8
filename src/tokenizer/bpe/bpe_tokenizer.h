// src/tokenizer/bpe/bpe_tokenizer.h
//
// A tokenizer put together: added tokens, normalizer, pieces, pairs; and back.
// Threads: any; each call takes scratch space of its own from a pool.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/bpe/added_tokens.h"
#include "tokenizer/bpe/decode.h"
#include "tokenizer/bpe/model.h"
#include "tokenizer/bpe/normalize.h"
#include "tokenizer/bpe/pretokenize.h"
#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {

struct BpeParts {
  std::string name;
  std::string fingerprint;
  BpeTables tables;
  std::vector<AddedToken> added;
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null: the text is one piece
  std::unique_ptr<Decoder> decoder;             // may be null: texts of tokens follow each other
  // Set when each of the steps before the pairs keeps all bytes.
  bool lossless = false;
  // Tokenizer::CutsAtLines, CutsAtWords.
  bool cuts_at_lines = false, cuts_at_words = false;
  // -1: the tokenizer has none; an id after all others is added for it.
  int32_t end_of_document = -1;
  std::optional<int32_t> beginning_of_text;
  std::vector<TokenizerFile> files;
  std::vector<TokenizerPart> description;
};

class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts);

  std::string name() const override { return parts_.name; }
  int32_t vocabulary() const override { return vocabulary_; }
  int32_t end_of_document() const override { return parts_.end_of_document; }
  std::optional<int32_t> beginning_of_text() const override { return parts_.beginning_of_text; }
  bool lossless() const override { return parts_.lossless && model_.every_byte(); }
  std::string Fingerprint() const override { return parts_.fingerprint; }
  std::vector<int32_t> Encode(std::string_view text) const override;
  std::vector<int32_t> EncodeWithSpecials(std::string_view text) const override;
  std::string Decode(std::span<const int32_t> ids) const override;
  std::string TokenText(int32_t id) const override;
  std::vector<TokenizerPart> Describe() const override { return parts_.description; }
  std::vector<SpecialToken> special_tokens() const override;
  std::vector<TokenizerFile> files() const override { return parts_.files; }
  bool CutsAtLines() const override { return parts_.cuts_at_lines; }
  bool CutsAtWords() const override { return parts_.cuts_at_words; }

 private:
  const std::string& TextOf(int32_t id) const;
  std::vector<int32_t> EncodeAll(std::string_view text, bool with_specials) const;
  void EncodeStretch(std::string_view text, bool first, BpeModel::Workspace& workspace,
                     std::vector<int32_t>& ids) const;

  BpeParts parts_;
  BpeModel model_;
  AddedTokenFinder raw_, normalized_;
  int32_t vocabulary_ = 0;
  std::vector<const AddedToken*> added_by_id_;  // null: a token of the model

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<BpeModel::Workspace>> free_;
};

}  // namespace penstock::tokenizer
