// src/data/tokenize/documents.h
//
// The documents in a piece of text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_pieces.h"

namespace penstock::data {

struct DocumentOptions {
  std::string jsonl_field = "text";
  bool skip_malformed = false;  // lines without such a text are left out, else a UserError
};

// What is left out.
struct LeftOut {
  int64_t empty_documents = 0;
  int64_t malformed_lines = 0;
  std::vector<std::string> faults;  // of those lines, the first few
};

// A document, or a part of one; `index` counts documents of the file, of .jsonl files its lines. `ends`: nothing of the
// document comes after it.
using VisitText = std::function<void(std::string_view text, const TextFile& file, int64_t index, bool ends)>;

// UserError for a malformed line, with file and line. Any thread.
LeftOut VisitDocuments(const TextPiece& piece, const std::vector<TextFile>& files, const DocumentOptions& options,
                       const VisitText& visit);

// The text in `field` of the JSON object `line`. UserError that starts with `where`.
std::string TextOfLine(std::string_view line, const std::string& field, const std::string& where);

}  // namespace penstock::data
