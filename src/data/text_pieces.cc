#include "data/text_pieces.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "base/utf8.h"

namespace penstock::data {
namespace {

constexpr size_t kLookedAt = 64 << 10;  // of a file, to see whether it is text

// Is the one character `text` consists of white space, or nothing one can be sure of? Control characters count as
// white space: patterns differ about some of them.
bool MayBeSpace(std::string_view text) {
  if (text.empty() || Utf8Length(text) != text.size()) return true;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() == 1) return byte(0) <= 0x20 || byte(0) == 0x7f;
  uint32_t point = 0;
  if (text.size() == 2) point = (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
  if (text.size() == 3) point = (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
  return (point >= 0x80 && point <= 0xA0) || point == 0x1680 || point == 0x180E ||
         (point >= 0x2000 && point <= 0x200F) || (point >= 0x2028 && point <= 0x202F) ||
         (point >= 0x205F && point <= 0x2064) || point == 0x3000 || point == 0xFEFF;
}

std::string_view LastCharacter(std::string_view text) {
  size_t at = text.size();
  while (at > 0 && text.size() - at < 4) {
    --at;
    if ((static_cast<unsigned char>(text[at]) & 0xC0u) != 0x80u) break;
  }
  return text.substr(at);
}

}  // namespace

size_t SafeCut(std::string_view text) {
  for (size_t at = text.rfind('\n'); at != std::string_view::npos && at > 0; at = text.rfind('\n', at - 1)) {
    const std::string_view after = text.substr(at + 1, 4);
    if (!MayBeSpace(after.substr(0, Utf8Length(after))) && !MayBeSpace(LastCharacter(text.substr(0, at))))
      return at + 1;
  }
  return 0;
}

size_t SafeWordCut(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (size_t at = text.rfind(' '); at != std::string_view::npos && at > 0; at = text.rfind(' ', at - 1))
    if (at + 1 < text.size() && letter(text[at + 1]) && letter(text[at - 1])) return at;
  return 0;
}

bool IsJsonLines(std::string_view name) {
  std::string lower(name.substr(name.size() - std::min<size_t>(name.size(), 8)));
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower.ends_with(".jsonl") || lower.ends_with(".ndjson");
}

TextPieces::TextPieces(std::vector<TextFile> files, Options options, TextPosition start)
    : files_(std::move(files)), options_(std::move(options)), at_(start) {}

std::optional<TextPiece> TextPieces::Next() {
  TextPiece piece;
  // Many small files or documents make one piece; few segments or many, a piece is about as large.
  while (piece.text.size() < options_.piece_bytes && piece.segments.size() < 4096 &&
         at_.file < static_cast<int64_t>(files_.size())) {
    if (file_ == nullptr && !OpenFile()) continue;
    if (IsJsonLines(files_[static_cast<size_t>(at_.file)].name))
      AddLines(piece);
    else
      AddText(piece);
  }
  piece.after = at_;
  if (piece.segments.empty() && piece.empty_documents == 0) return std::nullopt;
  return piece;
}

bool TextPieces::OpenFile() {
  const TextFile& file = files_[static_cast<size_t>(at_.file)];
  file_ = FileSystem::Real().Open(file.path);
  CheckUnchanged();
  buffer_.clear();
  begin_ = 0;
  if (at_.offset > 0) return true;
  Fill(kLookedAt);
  std::string_view head = Rest();
  // A character that is cut in two at the end of what was looked at is no fault of the file.
  if (!AtEnd()) head.remove_suffix(LastCharacter(head).size());
  const std::string why = WhyNotText(head);
  if (why.empty()) return true;
  if (file.named) throw UserError("'{}' is not text: {}", file.path, why);
  log::Warning("'{}' is left out, it is not text: {}", file.path, why);
  ++at_.skipped_files;
  CloseFile();
  return false;
}

void TextPieces::CheckUnchanged() const {
  const TextFile& file = files_[static_cast<size_t>(at_.file)];
  if (file_->size() != file.bytes || TimeOfChange(file.path) != file.changed)
    throw WorldError(fmt::format("'{}' changed while the command ran; start anew when it changes no more", file.path));
}

void TextPieces::CloseFile() {
  CheckUnchanged();
  at_.input_bytes += files_[static_cast<size_t>(at_.file)].bytes - at_.offset;
  ++at_.file;
  at_.offset = at_.document = at_.line = 0;
  at_.inside = false;
  file_.reset();
}

void TextPieces::Fill(size_t bytes) {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const auto rest = static_cast<size_t>(file_->size() - at_.offset);
  const size_t have = buffer_.size(), want = std::min(bytes, rest);
  if (want <= have) return;
  buffer_.resize(want);
  file_->ReadAt(at_.offset + static_cast<int64_t>(have), std::span(buffer_).subspan(have));
}

bool TextPieces::AtEnd() const { return at_.offset + static_cast<int64_t>(Rest().size()) == file_->size(); }

void TextPieces::Take(TextPiece& piece, size_t bytes, bool ends) {
  const size_t begin = piece.text.size();
  piece.text += Rest().substr(0, bytes);
  if (bytes > 0 || at_.inside)
    piece.segments.push_back({begin, piece.text.size(), at_.file, at_.document, false, !at_.inside, ends});
  else if (ends)
    ++piece.empty_documents;
  Skip(bytes);
  at_.inside = !ends;
  if (ends) ++at_.document;
}

void TextPieces::Skip(size_t bytes) {
  begin_ += bytes;
  at_.offset += static_cast<int64_t>(bytes);
  at_.input_bytes += static_cast<int64_t>(bytes);
}

// The first line of Rest() that is the separator. Rest() starts where a line does, or with a space (a cut between
// words), and then no separator does.
bool TextPieces::FindSeparator(size_t* begin, size_t* end) const {
  const std::string& separator = options_.separator;
  if (separator.empty()) return false;
  const std::string_view text = Rest();
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    size_t after = at + separator.size();
    if (after < text.size() && text[after] == '\r') ++after;
    if (after < text.size() ? text[after] != '\n' : !AtEnd()) continue;
    *begin = at;
    *end = std::min(after + 1, text.size());
    return true;
  }
  return false;
}

void TextPieces::AddText(TextPiece& piece) {
  for (size_t want = options_.piece_bytes;;) {
    if (size_t begin, end; FindSeparator(&begin, &end)) {
      Take(piece, begin, /*ends=*/true);
      Skip(end - begin);
      if (AtEnd() && Rest().empty()) CloseFile();
      return;
    }
    if (AtEnd()) {
      Take(piece, Rest().size(), /*ends=*/true);
      return CloseFile();
    }
    if (Rest().size() >= options_.piece_bytes) {
      size_t cut = options_.cuts_at_lines ? SafeCut(Rest()) : 0;
      // Not where a separator could be cut in two.
      if (cut == 0 && options_.cuts_at_words && options_.separator.find(' ') == std::string::npos)
        cut = SafeWordCut(Rest());
      if (cut > 0) return Take(piece, cut, /*ends=*/false);
    }
    if (Rest().size() >= options_.longest) {
      const TextFile& file = files_[static_cast<size_t>(at_.file)];
      throw UserError(
          "'{}': document {} has {} from byte {} on without a place to cut it{}; divide it into documents "
          "(--document-separator, or several files)",
          file.path, at_.document + 1, FormatBytes(static_cast<int64_t>(Rest().size())), at_.offset,
          options_.cuts_at_lines
              ? " (a line end between two characters that are no white space, or a space between two words)"
              : ", and this tokenizer's tokens may reach over line ends");
    }
    if (Rest().size() >= want) want = std::min(2 * Rest().size(), options_.longest);
    Fill(want);
  }
}

void TextPieces::AddLines(TextPiece& piece) {
  for (size_t want = options_.piece_bytes;;) {
    Fill(want);
    const std::string_view text = Rest();
    const bool last = AtEnd();
    const size_t line_end = text.rfind('\n');
    if (line_end == std::string_view::npos && !last) {
      if (text.size() >= options_.longest)
        throw UserError("'{}' line {}: longer than {}", files_[static_cast<size_t>(at_.file)].path, at_.line + 1,
                        FormatBytes(static_cast<int64_t>(options_.longest)));
      want = std::min(2 * want, options_.longest);
      continue;
    }
    const size_t bytes = last ? text.size() : line_end + 1;
    const size_t begin = piece.text.size();
    piece.text += text.substr(0, bytes);
    const std::string_view taken = std::string_view(piece.text).substr(begin);
    piece.segments.push_back({begin, piece.text.size(), at_.file, at_.line, true, true, true});
    at_.line += std::count(taken.begin(), taken.end(), '\n');
    Skip(bytes);
    if (last) CloseFile();
    return;
  }
}

}  // namespace penstock::data
