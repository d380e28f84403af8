#include "schedule/passes/recompute.h"

#include <set>
#include <utility>

#include "schedule/passes/make_action.h"

namespace penstock::schedule {

void Recompute(Schedule& schedule, const LowerSpec& spec) {
  for (int s = 0; s < schedule.num_stages() && !spec.recompute.empty(); ++s)
    schedule.stage_options[s].recompute = spec.recompute[s];
  for (auto& list : schedule.ranks) {
    std::vector<Action> out;
    out.reserve(list.size() * 4 / 3);
    std::set<std::pair<uint16_t, int32_t>> done;  // stage, micro-batch: a written order may say where
    for (const Action& action : list) {
      const Key& key = action.key;
      const auto which = std::make_pair(key.unit.stage, key.micro_batch);
      if (key.kind == Kind::recompute) done.insert(which);
      if ((key.kind == Kind::backward || key.kind == Kind::backward_input) &&
          schedule.stage_options[key.unit.stage].recompute && done.insert(which).second)
        out.push_back(MakeCompute(Kind::recompute, key.unit.stage, key.micro_batch));
      out.push_back(action);
    }
    list = std::move(out);
  }
}

}  // namespace penstock::schedule
