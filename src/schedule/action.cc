#include "schedule/action.h"

#include <fmt/format.h>

#include "schedule/operators.h"

namespace penstock::schedule {

std::string ToString(const Key& key) {
  std::string text(Name(key.kind));
  if (key.op != kNoOp) text += fmt::format(":{}", OpName(key.op));
  text += ' ';
  if (key.unit.component != 0) text += fmt::format("c{}/", key.unit.component);
  text += fmt::format("{}", key.unit.stage);
  if (key.micro_batch >= 0) text += fmt::format(".{}", key.micro_batch);
  if (key.part != 0) text += fmt::format(" part {}", key.part);
  if (key.round != 0) text += fmt::format(" round {}", key.round);
  if (key.step != 0) text += fmt::format(" +{}", key.step);
  return text;
}

std::string ToString(const Action& action) {
  std::string text = ToString(action.key);
  if (action.key.kind == Kind::send) text += fmt::format(" -> {}", action.peer_or_group);
  if (action.key.kind == Kind::recv) text += fmt::format(" <- {}", action.peer_or_group);
  if (action.key.kind == Kind::collective) text += fmt::format(" group {}", action.peer_or_group);
  if (action.guard >= 0) text += fmt::format(" if {}", action.guard);
  return text;
}

}  // namespace penstock::schedule
