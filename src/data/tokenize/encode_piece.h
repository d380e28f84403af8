// src/data/tokenize/encode_piece.h
//
// The tokens of a piece of text, as bytes of a token file, divided into what is trained on and what is held back.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/text_pieces.h"
#include "data/tokenize/documents.h"
#include "tokenizer/tokenizer.h"

namespace penstock::data {

struct EncodedPiece {
  struct Stream {
    std::string bytes;          // tokens, as in the file
    std::vector<int64_t> ends;  // tokens of the piece before each end of a document
  };
  std::array<Stream, 2> streams;  // train, validation
  int64_t text_bytes = 0;
  LeftOut left_out;
  TextPosition after;
};

struct EncodeOptions {
  DocumentOptions documents;
  double validation = 0;
  uint64_t validation_seed = 0;
};

// Is document `index` of the file held back?
bool IsHeldBack(const EncodeOptions& options, std::string_view file, int64_t index);

// UserError for a malformed line, with file and line. Any thread.
EncodedPiece EncodePiece(const TextPiece& piece, const std::vector<TextFile>& files, const EncodeOptions& options,
                         const tokenizer::Tokenizer& tokenizer);

}  // namespace penstock::data
