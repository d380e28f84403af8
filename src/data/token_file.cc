#include "data/token_file.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace penstock::data {
namespace {

constexpr std::string_view kMagic = "PNSTKTOK";
constexpr std::string_view kEndMagic = "PNSTKEND";
constexpr uint32_t kVersion = 1;
constexpr size_t kFixedHeader = 56;  // before name and fingerprint
constexpr size_t kHashBytes = 16;
constexpr size_t kAlignment = 64;      // of the first token in the file
constexpr size_t kLongestText = 4096;  // of name and of fingerprint
constexpr size_t kTrailer = 2 * kHashBytes + 8;
constexpr size_t kBlock = 1 << 20;

void Put(std::string& out, uint64_t value, int bytes) {
  for (int b = 0; b < bytes; ++b) out += static_cast<char>(value >> (8 * b));
}

uint64_t Read(const unsigned char* at, int bytes) {
  uint64_t value = 0;
  for (int b = 0; b < bytes; ++b) value |= uint64_t{at[b]} << (8 * b);
  return value;
}

std::string HashText(const Hash128& hash) {
  std::string out;
  Put(out, hash.high, 8);
  Put(out, hash.low, 8);
  return out;
}

Hash128 ReadHash(const unsigned char* at) { return {.high = Read(at, 8), .low = Read(at + 8, 8)}; }

size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

std::string Header(const TokenFileInfo& info) {
  PENSTOCK_CHECK(info.tokenizer.size() <= kLongestText && info.fingerprint.size() <= kLongestText, "{} and {} bytes",
                 info.tokenizer.size(), info.fingerprint.size());
  const size_t size = RoundUp(kFixedHeader + info.tokenizer.size() + info.fingerprint.size() + kHashBytes, kAlignment);
  std::string out(kMagic);
  Put(out, kVersion, 4);
  Put(out, static_cast<uint64_t>(TokenWidth(info.vocabulary)), 4);
  Put(out, size, 8);
  Put(out, static_cast<uint64_t>(info.tokens), 8);
  Put(out, static_cast<uint64_t>(info.documents), 8);
  Put(out, static_cast<uint64_t>(info.vocabulary), 4);
  Put(out, static_cast<uint64_t>(info.end_of_document), 4);
  Put(out, info.tokenizer.size(), 4);
  Put(out, info.fingerprint.size(), 4);
  out += info.tokenizer + info.fingerprint;
  out.resize(size - kHashBytes);
  return out + HashText(Hash(out));
}

}  // namespace

int32_t TokenWidth(int32_t vocabulary) { return vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4; }

TokenFileWriter::TokenFileWriter(const std::string& path, const TokenFileInfo& info, bool overwrite, FileSystem& files)
    : info_(info), width_(TokenWidth(info.vocabulary)), file_(path, overwrite, files) {
  PENSTOCK_CHECK(info.vocabulary >= 1 && info.end_of_document >= 0 && info.end_of_document < info.vocabulary &&
                     info.tokens >= 0 && info.documents >= 0,
                 "vocabulary {}, end of document {}, {} tokens, {} documents", info.vocabulary, info.end_of_document,
                 info.tokens, info.documents);
  file_.Append(Header(info));
}

void TokenFileWriter::Flush() {
  file_.Append(buffer_);
  (in_documents_ ? document_hash_ : token_hash_).Update(buffer_);
  buffer_.clear();
}

void TokenFileWriter::AppendTokens(std::span<const int32_t> ids) {
  PENSTOCK_CHECK(!in_documents_, "tokens after documents");
  for (const int32_t id : ids) {
    PENSTOCK_CHECK(id >= 0 && id < info_.vocabulary, "token id {} outside [0, {})", id, info_.vocabulary);
    Put(buffer_, static_cast<uint64_t>(id), width_);
    if (buffer_.size() >= kBlock) Flush();
  }
  tokens_ += static_cast<int64_t>(ids.size());
}

void TokenFileWriter::AppendEncoded(std::string_view bytes) {
  PENSTOCK_CHECK(!in_documents_ && bytes.size() % static_cast<size_t>(width_) == 0, "{} bytes", bytes.size());
  Flush();
  file_.Append(bytes);
  token_hash_.Update(bytes);
  tokens_ += static_cast<int64_t>(bytes.size()) / width_;
}

void TokenFileWriter::AppendDocumentEnds(std::span<const int64_t> ends) {
  if (!in_documents_) {
    Flush();
    in_documents_ = true;
    const size_t bytes = static_cast<size_t>(tokens_) * static_cast<size_t>(width_);
    file_.Append(std::string(RoundUp(bytes, 8) - bytes, '\0'));
    Put(buffer_, 0, 8);
  }
  for (const int64_t end : ends) {
    PENSTOCK_CHECK(end > last_end_ && end <= tokens_, "document end {} after {} of {} tokens", end, last_end_, tokens_);
    last_end_ = end;
    Put(buffer_, static_cast<uint64_t>(end), 8);
    if (buffer_.size() >= kBlock) Flush();
  }
  documents_ += static_cast<int64_t>(ends.size());
}

void TokenFileWriter::Commit() {
  AppendDocumentEnds({});
  Flush();
  PENSTOCK_CHECK(tokens_ == info_.tokens && documents_ == info_.documents && last_end_ == tokens_,
                 "{} tokens of {}, {} documents of {}, the last one ends at {}", tokens_, info_.tokens, documents_,
                 info_.documents, last_end_);
  file_.Append(HashText(token_hash_.Digest()) + HashText(document_hash_.Digest()) + std::string(kEndMagic));
  file_.Commit();
}

void WriteTokenFile(const std::string& path, TokenFileInfo info, const std::vector<std::vector<int32_t>>& documents,
                    bool overwrite, FileSystem& files) {
  std::vector<int64_t> ends;
  info.tokens = 0;
  for (const std::vector<int32_t>& document : documents)
    ends.push_back(info.tokens += static_cast<int64_t>(document.size()) + 1);
  info.documents = static_cast<int64_t>(documents.size());
  TokenFileWriter writer(path, info, overwrite, files);
  for (const std::vector<int32_t>& document : documents) {
    writer.AppendTokens(document);
    writer.AppendTokens({&info.end_of_document, 1});
  }
  writer.AppendDocumentEnds(ends);
  writer.Commit();
}

TokenFile::TokenFile(const std::string& path) : map_(path) {
  const unsigned char* const data = map_.bytes().data();
  const size_t size = map_.bytes().size();
  if (size < kFixedHeader + kHashBytes || std::memcmp(data, kMagic.data(), kMagic.size()) != 0)
    Refuse("it does not start with 'PNSTKTOK'; `penstock tokenize` makes such files from text");
  const auto version = static_cast<uint32_t>(Read(data + 8, 4));
  if (version != kVersion) Refuse(fmt::format("it has version {}, and version {} is known", version, kVersion));
  const uint64_t header = Read(data + 16, 8);
  const uint64_t name = Read(data + 48, 4), fingerprint = Read(data + 52, 4);
  if (name > kLongestText || fingerprint > kLongestText ||
      header != RoundUp(kFixedHeader + name + fingerprint + kHashBytes, kAlignment) || header > size)
    Refuse("its header does not have the length that it says");
  if (ReadHash(data + header - kHashBytes) != Hash(data, header - kHashBytes)) Refuse("its header has another hash");
  const uint64_t width = Read(data + 12, 4), tokens = Read(data + 24, 8), documents = Read(data + 32, 8);
  const uint64_t vocabulary = Read(data + 40, 4), end = Read(data + 44, 4);
  if (vocabulary < 1 || vocabulary > INT32_MAX || end >= vocabulary ||
      width != static_cast<uint64_t>(TokenWidth(static_cast<int32_t>(vocabulary))))
    Refuse(fmt::format("vocabulary {}, end of document {} and {} bytes per token do not fit", vocabulary, end, width));
  // No overflow: a count beyond the file's size is refused before it is multiplied.
  if (tokens > size || documents > size || documents > tokens || (documents == 0 && tokens > 0))
    Refuse(fmt::format("{} tokens in {} documents do not fit in {} bytes", tokens, documents, size));
  const uint64_t table = header + RoundUp(tokens * width, 8);
  const uint64_t hashes = table + 8 * (documents + 1);
  if (hashes + kTrailer != size)
    Refuse(fmt::format("it has {} bytes, and {} tokens in {} documents take {}", size, tokens, documents,
                       hashes + kTrailer));
  if (std::memcmp(data + size - kEndMagic.size(), kEndMagic.data(), kEndMagic.size()) != 0)
    Refuse("it does not end with 'PNSTKEND'");
  info_.tokenizer.assign(reinterpret_cast<const char*>(data) + kFixedHeader, name);
  info_.fingerprint.assign(reinterpret_cast<const char*>(data) + kFixedHeader + name, fingerprint);
  info_.vocabulary = static_cast<int32_t>(vocabulary);
  info_.end_of_document = static_cast<int32_t>(end);
  info_.tokens = static_cast<int64_t>(tokens);
  info_.documents = static_cast<int64_t>(documents);
  width_ = static_cast<int32_t>(width);
  tokens_ = data + header;
  table_ = data + table;
  hashes_ = data + hashes;
  if (Read(table_, 8) != 0 || Read(table_ + 8 * documents, 8) != tokens)
    Refuse("its table of documents does not cover its tokens");
  for (uint64_t at = header + tokens * width; at < table; ++at)
    if (data[at] != 0) Refuse("there is something between its tokens and its table");
}

void TokenFile::Refuse(std::string_view rule) const { throw UserError("token file '{}': {}", path(), rule); }

void TokenFile::RefuseId(int64_t i, int32_t id) const {
  Refuse(fmt::format("token {} has the id {}, and the vocabulary has {}: the file is damaged", i,
                     static_cast<uint32_t>(id), info_.vocabulary));
}

int64_t TokenFile::Entry(int64_t i) const { return static_cast<int64_t>(Read(table_ + 8 * i, 8)); }

TokenFile::Range TokenFile::Document(int64_t i) const {
  PENSTOCK_CHECK(i >= 0 && i < documents(), "document {} of {}", i, documents());
  const Range range{Entry(i), Entry(i + 1)};
  if (range.begin < 0 || range.end <= range.begin || range.end > tokens())
    Refuse(fmt::format("document {} goes from token {} to {} of {}: the file is damaged", i, range.begin, range.end,
                       tokens()));
  return range;
}

void TokenFile::Verify(const ProgressSink& sink, std::vector<int64_t>* counts) const {
  const size_t begin = static_cast<size_t>(tokens_ - map_.bytes().data());
  const size_t table = static_cast<size_t>(table_ - map_.bytes().data());
  const size_t end = static_cast<size_t>(hashes_ - map_.bytes().data());
  WorkProgress progress(fmt::format("check of '{}'", path()), static_cast<int64_t>(end - begin),
                        WorkProgress::Unit::bytes, sink);
  if (counts != nullptr) counts->assign(static_cast<size_t>(info_.vocabulary), 0);
  Hasher tokens_hash, table_hash;
  const int64_t per_block = static_cast<int64_t>(kBlock) / width_;
  for (int64_t first = 0; first < tokens(); first += per_block) {
    const int64_t n = std::min(per_block, tokens() - first);
    const unsigned char* const block = tokens_ + first * width_;
    const auto bytes = static_cast<size_t>(n * width_);
    tokens_hash.Update(block, bytes);
    for (int64_t i = first; i < first + n; ++i) {
      const int32_t id = (*this)[i];
      if (counts != nullptr) ++(*counts)[static_cast<size_t>(id)];
    }
    const auto done = static_cast<size_t>(block - map_.bytes().data()) + bytes;
    map_.Forget(done - bytes, done);
    progress.Update(static_cast<int64_t>(done - begin));
  }
  if (tokens_hash.Digest() != ReadHash(hashes_)) Refuse("its tokens have another hash: the file is damaged");
  for (size_t at = table; at < end; at += kBlock) {
    const size_t bytes = std::min(kBlock, end - at);
    table_hash.Update(map_.bytes().data() + at, bytes);
    map_.Forget(at, at + bytes);
    progress.Update(static_cast<int64_t>(at + bytes - begin));
  }
  if (table_hash.Digest() != ReadHash(hashes_ + kHashBytes))
    Refuse("its table of documents has another hash: the file is damaged");
  for (int64_t i = 0; i < documents(); ++i) {
    Document(i);
    if (i % (int64_t{1} << 17) == 0) progress.Tick();
  }
}

Hash128 TokenFile::ContentHash() const {
  // Header and both hashes: header alone would be equal for other text of the same length.
  Hasher hasher;
  hasher.Update(info_.fingerprint).Update(static_cast<uint64_t>(info_.vocabulary));
  hasher.Update(static_cast<uint64_t>(info_.end_of_document)).Update(static_cast<uint64_t>(info_.tokens));
  return hasher.Update(static_cast<uint64_t>(info_.documents)).Update(hashes_, 2 * kHashBytes).Digest();
}

}  // namespace penstock::data
