#include "schedule/passes/check.h"

#include <numeric>

#include "schedule/passes/make_action.h"

namespace penstock::schedule {

void InsertChecks(Schedule& schedule, const LowerSpec&) {
  // At the end of the lists: the compute stream is in order, an earlier norm would hold up the backward behind it.
  for (const ParameterUnit& unit : schedule.holders.units) {
    if (unit.uses.empty()) continue;
    for (const int32_t r : schedule.groups[unit.group])
      schedule.ranks[r].push_back(MakeAction(Kind::task, unit.unit, -1, FindOp(ops::kNorm)));
  }
  std::vector<int32_t> all(schedule.ranks.size());
  std::iota(all.begin(), all.end(), 0);
  const int32_t world = schedule.GroupOf(all);
  for (auto& list : schedule.ranks) {
    list.push_back(MakeCollective(ops::kGatherStatistics, Unit{}, 0, world));
    list.push_back(MakeAction(Kind::check, Unit{}, -1, FindOp(ops::kFiniteClip), kFinitePredicate));
  }
}

}  // namespace penstock::schedule
