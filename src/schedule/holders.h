// src/schedule/holders.h
//
// Parameter units and the ranks that keep them. The parameters of stage s that only stage s uses are unit s with one
// use. A parameter that several stages use (tied embeddings) is a unit of its own, numbered S, S+1, ..., with one use
// per stage in layer order. Gradients are reduced per use over the use's ranks, then summed over the uses (numerics.md
// R4, R5); groups follow from holders.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer_class.h"
#include "schedule/action.h"

namespace penstock::schedule {

struct ParameterUse {
  uint16_t stage = 0;
  int32_t group = -1;  // index in Schedule::groups: the ranks that run this stage (for any micro-batch)
  friend bool operator==(const ParameterUse&, const ParameterUse&) = default;
};

struct ParameterUnit {
  Unit unit;
  std::vector<ParameterUse> uses;
  int32_t group = -1;  // all holders: union over the uses
  BufferForm form = BufferForm::full;
  bool shared() const { return uses.size() > 1; }
  friend bool operator==(const ParameterUnit&, const ParameterUnit&) = default;
};

struct Holders {
  std::vector<ParameterUnit> units;  // by unit.stage, ascending and dense: units[i].unit.stage == i
  friend bool operator==(const Holders&, const Holders&) = default;
};

}  // namespace penstock::schedule
