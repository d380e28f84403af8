#include "schedule/passes/split_backward.h"

#include <set>
#include <utility>

namespace penstock::schedule {
namespace {

Action WithKind(Action action, Kind kind) {
  action.key.kind = kind;
  return action;
}

std::vector<Action> Split(const std::vector<Action>& list) {
  std::vector<Action> out;
  out.reserve(list.size() * 3 / 2);
  for (const Action& action : list) {
    if (action.key.kind == Kind::backward) {
      out.push_back(WithKind(action, Kind::backward_input));
      out.push_back(WithKind(action, Kind::backward_weight));
    } else {
      out.push_back(action);
    }
  }
  return out;
}

std::vector<Action> Merge(const std::vector<Action>& list) {
  std::set<std::pair<Unit, int32_t>> inputs, weights;
  for (const Action& action : list) {
    if (action.key.kind == Kind::backward_input) inputs.emplace(action.key.unit, action.key.micro_batch);
    if (action.key.kind == Kind::backward_weight) weights.emplace(action.key.unit, action.key.micro_batch);
  }
  std::vector<Action> out;
  out.reserve(list.size());
  for (const Action& action : list) {
    const std::pair<Unit, int32_t> at(action.key.unit, action.key.micro_batch);
    if (action.key.kind == Kind::backward_input && weights.count(at)) {
      out.push_back(WithKind(action, Kind::backward));
    } else if (action.key.kind != Kind::backward_weight || !inputs.count(at)) {
      out.push_back(action);
    }
  }
  return out;
}

}  // namespace

void SplitBackward(Schedule& schedule, const LowerSpec& spec) {
  if (spec.split_backward == LowerSpec::Split::as_ordered) return;
  const bool always = spec.split_backward == LowerSpec::Split::always;
  for (auto& list : schedule.ranks) list = always ? Split(list) : Merge(list);
}

}  // namespace penstock::schedule
