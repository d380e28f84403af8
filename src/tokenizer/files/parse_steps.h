// src/tokenizer/files/parse_steps.h
//
// The steps of a tokenizer.json: normalizer, pre_tokenizer, decoder.
#pragma once

#include <memory>
#include <string>

#include "tokenizer/bpe/decode.h"
#include "tokenizer/bpe/normalize.h"
#include "tokenizer/bpe/pretokenize.h"
#include "tokenizer/files/json.h"

namespace penstock::tokenizer {

struct ParsedNormalizer {
  std::unique_ptr<Normalizer> normalizer;  // null: none
  bool keeps_bytes = true;                 // changes nothing
  bool cuts_at_lines = true;
};
ParsedNormalizer ParseNormalizer(const Json& step, const std::string& where);

struct ParsedPreTokenizer {
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // null: none
  bool byte_level = false;
  bool keeps_bytes = true;
  bool cuts_at_lines = false;
};
ParsedPreTokenizer ParsePreTokenizer(const Json& step, const std::string& where);

// `byte_level` is set when the decoder spells bytes (type ByteLevel): no steps are needed for it.
struct ParsedDecoder {
  std::unique_ptr<Decoder> decoder;
  bool byte_level = false;
};
ParsedDecoder ParseDecoder(const Json& step, const std::string& where);

}  // namespace penstock::tokenizer
