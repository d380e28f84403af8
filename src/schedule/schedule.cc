#include "schedule/schedule.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::schedule {

int64_t Schedule::num_actions() const {
  int64_t n = 0;
  for (const auto& list : ranks) n += static_cast<int64_t>(list.size());
  return n;
}

bool Schedule::is_compute_only() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const std::vector<Action>& list) {
    return std::all_of(list.begin(), list.end(), [](const Action& a) { return IsComputeKind(a.key.kind); });
  });
}

bool Schedule::HasRank(int32_t group, int rank) const {
  return std::binary_search(groups[group].begin(), groups[group].end(), rank);
}

int32_t Schedule::GroupOf(const std::vector<int32_t>& group_ranks) {
  const auto it = std::find(groups.begin(), groups.end(), group_ranks);
  if (it != groups.end()) return static_cast<int32_t>(it - groups.begin());
  groups.push_back(group_ranks);
  return static_cast<int32_t>(groups.size() - 1);
}

SizeId Schedule::SizeOf(const std::string& symbol, int64_t upper_bound) {
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i].symbol != symbol) continue;
    sizes[i].upper_bound = std::max(sizes[i].upper_bound, upper_bound);
    return static_cast<SizeId>(i);
  }
  PENSTOCK_CHECK(sizes.size() < 65536, "more than 65535 different sizes in one schedule");
  sizes.push_back({symbol, upper_bound});
  return static_cast<SizeId>(sizes.size() - 1);
}

}  // namespace penstock::schedule
