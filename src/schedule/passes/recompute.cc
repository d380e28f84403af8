#include "schedule/passes/recompute.h"

#include "schedule/passes/make_action.h"

namespace penstock::schedule {

void Recompute(Schedule& schedule, const LowerSpec& spec) {
  for (int s = 0; s < schedule.num_stages() && !spec.recompute.empty(); ++s)
    schedule.stage_options[s].recompute = spec.recompute[s];
  for (auto& list : schedule.ranks) {
    std::vector<Action> out;
    out.reserve(list.size() * 4 / 3);
    for (const Action& action : list) {
      const Key& key = action.key;
      if ((key.kind == Kind::backward || key.kind == Kind::backward_input) &&
          schedule.stage_options[key.unit.stage].recompute)
        out.push_back(MakeCompute(Kind::recompute, key.unit.stage, key.micro_batch));
      out.push_back(action);
    }
    list = std::move(out);
  }
}

}  // namespace penstock::schedule
