#include "tokenizer/added_text.h"

#include <algorithm>
#include <utility>

namespace penstock::tokenizer {

AddedText::AddedText(const Tokenizer& tokenizer, std::vector<int32_t> prompt)
    : tokenizer_(tokenizer), ids_(std::move(prompt)) {
  Anchor();
}

std::string AddedText::Add(int32_t id) {
  ids_.push_back(id);
  const std::string now = tokenizer_.Decode({ids_.data() + first_, ids_.size() - first_});
  std::string added = now.size() > shown_ ? now.substr(shown_) : std::string();
  shown_ = std::max(shown_, now.size());
  if (ids_.size() - first_ >= 2 * kContext) Anchor();
  return added;
}

void AddedText::Anchor() {
  first_ = ids_.size() - std::min(ids_.size(), kContext);
  shown_ = tokenizer_.Decode({ids_.data() + first_, ids_.size() - first_}).size();
}

}  // namespace penstock::tokenizer
