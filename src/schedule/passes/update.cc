#include "schedule/passes/update.h"

#include "schedule/passes/check.h"
#include "schedule/passes/make_action.h"

namespace penstock::schedule {

void InsertUpdates(Schedule& schedule, const LowerSpec& spec) {
  for (const ParameterUnit& unit : schedule.holders.units) {
    if (unit.uses.empty()) continue;
    Action update = MakeAction(Kind::update, unit.unit, -1);
    update.guard = spec.check ? kFinitePredicate : -1;
    for (const int32_t r : schedule.groups[unit.group]) schedule.ranks[r].push_back(update);
  }
}

}  // namespace penstock::schedule
