#include "comm/common/tag_history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace penstock::comm {

void TagHistory::Add(const Tag& tag) {
  ++count_;
  last_.push_back(tag);
  if (last_.size() > size_t{kShownHistory}) last_.pop_front();
}

std::string TagHistory::ToString(const TagNamer& namer) const {
  std::vector<std::string> names;
  for (const Tag& tag : last_) names.push_back(namer(tag));
  return fmt::format("{}{}", count_ > last_.size() ? "..., " : "", fmt::join(names, ", "));
}

}  // namespace penstock::comm
