// src/schedule/passes/make_action.h
//
// Actions with their default stream, as passes make them.
#pragma once

#include <string_view>

#include "schedule/action.h"
#include "schedule/operators.h"

namespace penstock::schedule {

inline Action MakeAction(Kind kind, Unit unit, int micro_batch, OpId op = kNoOp, int part = 0) {
  Action action;
  action.key = {.kind = kind, .op = op, .unit = unit, .part = static_cast<int16_t>(part), .micro_batch = micro_batch};
  action.stream = DefaultStream(kind);
  return action;
}

inline Action MakeCompute(Kind kind, int stage, int micro_batch) {
  return MakeAction(kind, {0, static_cast<uint16_t>(stage)}, micro_batch);
}

inline Action MakeCollective(std::string_view op, Unit unit, int part, int32_t group, SizeId bytes = 0) {
  Action action = MakeAction(Kind::collective, unit, -1, FindOp(op), part);
  action.peer_or_group = group;
  action.bytes = bytes;
  return action;
}

}  // namespace penstock::schedule
