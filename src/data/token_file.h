// src/data/token_file.h
//
// Tokens of many documents in one file that is read through memory (docs/formats/token_file.md): header, tokens of 1, 2
// or 4 bytes, table of documents, hashes. A document's tokens include the end-of-document token that follows it.
//
// Threads: a TokenFile is immutable, any thread; a writer is used by one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/work_progress.h"

namespace penstock::data {

// 1, 2 or 4: what an id of [0, vocabulary) needs.
int32_t TokenWidth(int32_t vocabulary);

struct TokenFileInfo {
  std::string tokenizer;    // its name, for people
  std::string fingerprint;  // Tokenizer::Fingerprint
  int32_t vocabulary = 0;
  int32_t end_of_document = 0;
  int64_t tokens = 0;
  int64_t documents = 0;
};

// Writes a file that is either complete or not there. All in order: tokens, then the end of every document (the number
// of tokens before it, ascending; the last one is the number of tokens), then Commit. Memory does not grow with the
// file. Errors: UserError when the file exists and `overwrite` is false; WorldError when it cannot be written;
// InternalError for numbers that differ from `info`.
class TokenFileWriter {
 public:
  TokenFileWriter(const std::string& path, const TokenFileInfo& info, bool overwrite = false,
                  FileSystem& files = FileSystem::Real());

  void AppendTokens(std::span<const int32_t> ids);
  // The same, as bytes of the file: TokenWidth each, least significant first.
  void AppendEncoded(std::string_view bytes);
  void AppendDocumentEnds(std::span<const int64_t> ends);
  void Commit();

 private:
  void Flush();

  TokenFileInfo info_;
  int32_t width_;
  AtomicFile file_;
  Hasher token_hash_, document_hash_;
  int64_t tokens_ = 0, documents_ = 0, last_end_ = 0;
  bool in_documents_ = false;
  std::string buffer_;
};

// Small ones in one go: documents without their end-of-document tokens, which are put there.
void WriteTokenFile(const std::string& path, TokenFileInfo info, const std::vector<std::vector<int32_t>>& documents,
                    bool overwrite = false, FileSystem& files = FileSystem::Real());

class TokenFile {
 public:
  // Checks everything that takes no time: header and its hash, size of the file, ends of the table. UserError with file
  // and rule, before anything is allocated by what the file says.
  explicit TokenFile(const std::string& path);

  const std::string& path() const { return map_.path(); }
  const TokenFileInfo& info() const { return info_; }
  int64_t tokens() const { return info_.tokens; }
  int64_t documents() const { return info_.documents; }
  int32_t width() const { return width_; }

  // 0 <= i < tokens(). UserError for an id outside the vocabulary (the file is damaged).
  int32_t operator[](int64_t i) const {
    const int32_t id = At(i);
    if (id < 0 || id >= info_.vocabulary) [[unlikely]]
      RefuseId(i, id);
    return id;
  }
  // The tokens of document i: [begin, end). UserError when the table says what cannot be (the file is damaged).
  struct Range {
    int64_t begin = 0, end = 0;
  };
  Range Document(int64_t i) const;

  // Reads everything once: both hashes, order of the table, ids; and counts every id when `counts` is given (resized to
  // the vocabulary). UserError with file and rule. Leaves none of the file in the process's memory.
  void Verify(const ProgressSink& progress = {}, std::vector<int64_t>* counts = nullptr) const;

  // Of contents, as the file says: two files with equal hashes have equal tokens and documents.
  Hash128 ContentHash() const;
  // Of this very file, to see that it was replaced or touched.
  int64_t file_size() const { return map_.size(); }
  int64_t changed() const { return map_.changed(); }

 private:
  int32_t At(int64_t i) const {
    const unsigned char* at = tokens_ + i * width_;
    if (width_ == 1) return at[0];
    if (width_ == 2) return static_cast<int32_t>(at[0] | uint32_t{at[1]} << 8);
    return static_cast<int32_t>(at[0] | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24);
  }
  [[noreturn]] void Refuse(std::string_view rule) const;
  [[noreturn]] void RefuseId(int64_t i, int32_t id) const;
  int64_t Entry(int64_t i) const;  // of the table, 0 <= i <= documents

  MappedFile map_;
  TokenFileInfo info_;
  int32_t width_ = 1;
  const unsigned char* tokens_ = nullptr;
  const unsigned char* table_ = nullptr;
  const unsigned char* hashes_ = nullptr;
};

}  // namespace penstock::data
