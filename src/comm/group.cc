#include "comm/group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace penstock::comm {

Group::Group(std::vector<int> ranks, std::string name, int self, int id) {
  const auto at = std::find(ranks.begin(), ranks.end(), self);
  const int position = at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
  data_ = std::make_shared<const Data>(Data{std::move(ranks), std::move(name), position, id});
}

std::string Group::ToString() const {
  if (!data_) return "(no group)";
  return fmt::format("{}{}{{{}}}", name(), name().empty() ? "" : " ", fmt::join(ranks(), ", "));
}

}  // namespace penstock::comm
