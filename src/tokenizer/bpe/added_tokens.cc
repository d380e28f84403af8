#include "tokenizer/bpe/added_tokens.h"

#include <algorithm>

#include "tokenizer/bpe/unicode.h"

namespace penstock::tokenizer {
namespace {

bool HasClass(Character c, uint8_t wanted) { return (ClassOf(CharacterClasses(), c.code) & wanted) != 0; }

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& t) { return t.text.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  for (size_t i = 0; i < tokens_.size(); ++i) by_first_[static_cast<unsigned char>(tokens_[i].text[0])].push_back(i);
}

const AddedToken* AddedTokenFinder::LongestAt(std::string_view rest, bool with_specials) const {
  for (const size_t i : by_first_[static_cast<unsigned char>(rest[0])])
    if (rest.starts_with(tokens_[i].text) && (with_specials || !tokens_[i].special)) return &tokens_[i];
  return nullptr;
}

void AddedTokenFinder::Split(std::string_view whole, bool with_specials,
                             const std::function<void(std::string_view)>& text,
                             const std::function<void(int32_t)>& token) const {
  size_t done = 0;
  for (size_t at = 0; at < whole.size();) {
    const AddedToken* found = LongestAt(whole.substr(at), with_specials);
    if (found == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + found->text.size();
    at = end;
    if (found->single_word) {
      const bool before = begin > 0 && HasClass(BackCharacter(whole.substr(0, begin)), kWord);
      const bool after = end < whole.size() && HasClass(FrontCharacter(whole.substr(end)), kWord);
      if (before || after) continue;
    }
    if (found->lstrip) {
      while (begin > done && HasClass(BackCharacter(whole.substr(done, begin - done)), kSpace))
        begin -= BackCharacter(whole.substr(done, begin - done)).length;
    }
    if (found->rstrip) {
      while (end < whole.size() && HasClass(FrontCharacter(whole.substr(end)), kSpace))
        end += FrontCharacter(whole.substr(end)).length;
      at = end;
    }
    if (begin > done) text(whole.substr(done, begin - done));
    token(found->id);
    done = end;
  }
  if (done < whole.size()) text(whole.substr(done));
}

}  // namespace penstock::tokenizer
