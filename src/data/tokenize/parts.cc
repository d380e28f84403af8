#include "data/tokenize/parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace penstock::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 4> kSuffixes = {"train", "validation", "train.ends", "validation.ends"};
constexpr int64_t kBlock = 1 << 20;

Json ToJson(const TextPosition& at) {
  return {{"file", at.file},     {"offset", at.offset},           {"document", at.document},          {"line", at.line},
          {"inside", at.inside}, {"input_bytes", at.input_bytes}, {"skipped_files", at.skipped_files}};
}

Json ToJson(const TokenizeTotals& totals) {
  return {{"documents", totals.documents},
          {"tokens", totals.tokens},
          {"text_bytes", totals.text_bytes},
          {"empty_documents", totals.empty_documents},
          {"malformed_lines", totals.malformed_lines}};
}

int64_t Number(const Json& json, const char* key) { return json.at(key).get<int64_t>(); }

// Of a record without its own hash.
std::string HashOf(const Json& record) { return Hasher().Update(record.dump()).Digest().Hex(); }

}  // namespace

TokenizeParts::TokenizeParts(std::string folder, int32_t token_width, FileSystem& files)
    : folder_(std::move(folder)), width_(token_width), files_(files) {
  while (ReadRecord(parts_)) ++parts_;
}

std::string TokenizeParts::NameOf(int64_t part, int file) const {
  return fmt::format("{}/part-{:06d}.{}", folder_, part, kSuffixes[static_cast<size_t>(file)]);
}
std::string TokenizeParts::RecordOf(int64_t part) const { return fmt::format("{}/part-{:06d}.json", folder_, part); }

bool TokenizeParts::ReadRecord(int64_t part) {
  const std::string path = RecordOf(part);
  if (!files_.Exists(path)) return false;
  TextPosition at;
  TokenizeTotals totals;
  try {
    Json json = Json::parse(ReadFile(path, files_));
    const auto own_hash = json.at("hash").get<std::string>();
    json.erase("hash");
    if (HashOf(json) != own_hash) return false;
    const Json& position = json.at("position");
    at = {.file = Number(position, "file"),
          .offset = Number(position, "offset"),
          .document = Number(position, "document"),
          .line = Number(position, "line"),
          .inside = position.at("inside").get<bool>(),
          .input_bytes = Number(position, "input_bytes"),
          .skipped_files = Number(position, "skipped_files")};
    const Json& sums = json.at("totals");
    totals.documents = sums.at("documents").get<std::array<int64_t, 2>>();
    totals.tokens = sums.at("tokens").get<std::array<int64_t, 2>>();
    totals.text_bytes = Number(sums, "text_bytes");
    totals.empty_documents = Number(sums, "empty_documents");
    totals.malformed_lines = Number(sums, "malformed_lines");
    if (json.at("hashes").size() != kFiles) return false;
  } catch (const nlohmann::json::exception&) {
    return false;  // as if it had not been finished: it is made again
  }
  for (int f = 0; f < kFiles; ++f) {
    const auto s = static_cast<size_t>(f % 2);
    const int64_t bytes =
        f < 2 ? (totals.tokens[s] - totals_.tokens[s]) * width_ : (totals.documents[s] - totals_.documents[s]) * 8;
    if (bytes < 0 || !files_.Exists(NameOf(part, f)) || files_.Open(NameOf(part, f))->size() != bytes) return false;
  }
  position_ = at;
  totals_ = totals;
  return true;
}

void TokenizeParts::Append(const EncodedPiece& piece) {
  if (!open_) {
    open_ = std::make_unique<Open>();
    for (int f = 0; f < kFiles; ++f) open_->file[static_cast<size_t>(f)] = files_.Create(NameOf(parts_, f));
    open_totals_ = totals_;
  }
  const auto put = [this](size_t f, const std::string& bytes) {
    open_->file[f]->Append(bytes);
    open_->hash[f].Update(bytes);
  };
  for (size_t s = 0; s < 2; ++s) {
    const EncodedPiece::Stream& stream = piece.streams[s];
    std::string ends;
    for (const int64_t end : stream.ends)
      for (int b = 0; b < 8; ++b)
        ends += static_cast<char>(static_cast<uint64_t>(open_totals_.tokens[s] + end) >> (8 * b));
    put(s, stream.bytes);
    put(2 + s, ends);
    open_totals_.tokens[s] += static_cast<int64_t>(stream.bytes.size()) / width_;
    open_totals_.documents[s] += static_cast<int64_t>(stream.ends.size());
  }
  open_totals_.text_bytes += piece.text_bytes;
  open_totals_.empty_documents += piece.left_out.empty_documents;
  open_totals_.malformed_lines += piece.left_out.malformed_lines;
  open_position_ = piece.after;
  open_bytes_ = open_position_.input_bytes - position_.input_bytes;
}

void TokenizeParts::CloseOne() {
  if (!open_) return;
  Json hashes = Json::array();
  for (size_t f = 0; f < kFiles; ++f) {
    open_->file[f]->Sync();
    open_->file[f]->Close();
    hashes.push_back(open_->hash[f].Digest().Hex());
  }
  Json record = {{"position", ToJson(open_position_)}, {"totals", ToJson(open_totals_)}, {"hashes", hashes}};
  record["hash"] = HashOf(record);
  WriteFileAtomically(RecordOf(parts_), record.dump() + "\n", /*overwrite=*/true, files_);
  ++parts_;
  position_ = open_position_;
  totals_ = open_totals_;
  open_.reset();
  open_bytes_ = 0;
}

int64_t TokenizeParts::bytes_of_files() const {
  int64_t bytes = 0;
  for (size_t s = 0; s < 2; ++s) bytes += totals_.tokens[s] * width_ + totals_.documents[s] * 8;
  return bytes;
}

void TokenizeParts::RefusePart(int64_t part, const std::string& file) {
  for (int64_t p = part; p < parts_; ++p) files_.Remove(RecordOf(p));
  throw WorldError(fmt::format("'{}' is not what was written; it is made again when the command is run again", file));
}

void TokenizeParts::WriteTokens(int stream, TokenFileWriter& writer, const std::function<void(int64_t)>& progress) {
  std::string block;
  std::vector<int64_t> ends;
  int64_t last_end = 0;  // of all parts so far
  for (const bool of_ends : {false, true}) {
    for (int64_t part = 0; part < parts_; ++part) {
      const int f = stream + (of_ends ? 2 : 0);
      const std::string name = NameOf(part, f);
      const std::unique_ptr<ReadableFile> file = files_.Open(name);
      const std::string wanted =
          Json::parse(ReadFile(RecordOf(part), files_)).at("hashes").at(static_cast<size_t>(f)).get<std::string>();
      Hasher hasher;
      for (int64_t at = 0; at < file->size(); at += kBlock) {
        block.resize(static_cast<size_t>(std::min(kBlock, file->size() - at)));
        file->ReadAt(at, block);
        hasher.Update(block);
        if (!of_ends) {
          writer.AppendEncoded(block);
        } else {
          ends.clear();
          for (size_t i = 0; i + 8 <= block.size(); i += 8) {
            uint64_t end = 0;
            for (size_t b = 0; b < 8; ++b) end |= uint64_t{static_cast<unsigned char>(block[i + b])} << (8 * b);
            ends.push_back(static_cast<int64_t>(end));
          }
          // Before the writer checks them as an invariant of ours.
          for (const int64_t end : ends) {
            if (end <= last_end || end > totals_.tokens[static_cast<size_t>(stream)]) RefusePart(part, name);
            last_end = end;
          }
          writer.AppendDocumentEnds(ends);
        }
        progress(static_cast<int64_t>(block.size()));
      }
      if (hasher.Digest().Hex() != wanted) RefusePart(part, name);
    }
  }
}

}  // namespace penstock::data
