#include "tokenizer/bpe/bpe_tokenizer.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::tokenizer {

BpeTokenizer::BpeTokenizer(BpeParts parts) : parts_(std::move(parts)), model_(std::move(parts_.tables)) {
  std::vector<AddedToken> raw, normalized;
  vocabulary_ = static_cast<int32_t>(model_.tables().tokens.size());
  for (const AddedToken& token : parts_.added) {
    AddedToken sought = token;
    if (token.normalized && parts_.normalizer != nullptr) sought.text = parts_.normalizer->Apply(token.text);
    (token.normalized ? normalized : raw).push_back(std::move(sought));
    vocabulary_ = std::max(vocabulary_, token.id + 1);
  }
  raw_ = AddedTokenFinder(std::move(raw));
  normalized_ = AddedTokenFinder(std::move(normalized));
  if (parts_.end_of_document < 0) {
    parts_.end_of_document = vocabulary_++;
    parts_.added.push_back({.id = parts_.end_of_document, .text = "", .special = true});
  }
  added_by_id_.resize(static_cast<size_t>(vocabulary_));
  for (const AddedToken& token : parts_.added) added_by_id_[static_cast<size_t>(token.id)] = &token;
}

std::vector<int32_t> BpeTokenizer::Encode(std::string_view text) const { return EncodeAll(text, false); }
std::vector<int32_t> BpeTokenizer::EncodeWithSpecials(std::string_view text) const { return EncodeAll(text, true); }

std::vector<int32_t> BpeTokenizer::EncodeAll(std::string_view text, bool with_specials) const {
  std::unique_ptr<BpeModel::Workspace> workspace;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      workspace = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (workspace == nullptr) workspace = std::make_unique<BpeModel::Workspace>();

  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 1);
  bool first = true;
  const auto token = [&](int32_t id) {
    ids.push_back(id);
    first = false;
  };
  const auto stretch = [&](std::string_view part) {
    EncodeStretch(part, first, *workspace, ids);
    first = false;
  };
  const auto normalized = [&](std::string_view part) {
    if (parts_.normalizer == nullptr && normalized_.empty()) return stretch(part);
    const std::string text_there =
        parts_.normalizer == nullptr ? std::string(part) : parts_.normalizer->Apply(std::string(part));
    normalized_.Split(text_there, with_specials, stretch, token);
  };
  if (raw_.empty())
    normalized(text);
  else
    raw_.Split(text, with_specials, normalized, token);

  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(workspace));
  return ids;
}

void BpeTokenizer::EncodeStretch(std::string_view text, bool first, BpeModel::Workspace& workspace,
                                 std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  if (parts_.pre_tokenizer == nullptr) return model_.Encode(text, workspace, ids);
  Pieces pieces;
  pieces.pieces.push_back({text, first});
  parts_.pre_tokenizer->Apply(pieces);
  for (const Pieces::Piece& piece : pieces.pieces) model_.Encode(piece.text, workspace, ids);
}

const std::string& BpeTokenizer::TextOf(int32_t id) const {
  if (id < 0 || id >= vocabulary_)
    throw UserError("token id {} is outside the vocabulary [0, {}) of {}", id, vocabulary_, parts_.name);
  const AddedToken* added = added_by_id_[static_cast<size_t>(id)];
  return added != nullptr ? added->text : model_.tables().tokens[static_cast<size_t>(id)];
}

std::string BpeTokenizer::TokenText(int32_t id) const { return TextOf(id); }

std::string BpeTokenizer::Decode(std::span<const int32_t> ids) const {
  std::vector<std::string> texts;
  std::string text;
  for (const int32_t id : ids) {
    const std::string& token = TextOf(id);
    if (parts_.decoder == nullptr)
      text += token;
    else
      texts.push_back(token);
  }
  if (parts_.decoder == nullptr) return text;
  parts_.decoder->Apply(texts);
  for (const std::string& part : texts) text += part;
  return text;
}

std::vector<SpecialToken> BpeTokenizer::special_tokens() const {
  std::vector<SpecialToken> tokens;
  for (const AddedToken& token : parts_.added)
    if (token.special) tokens.push_back({token.id, token.text});
  std::sort(tokens.begin(), tokens.end(), [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  return tokens;
}

}  // namespace penstock::tokenizer
