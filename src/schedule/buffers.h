// src/schedule/buffers.h
//
// Names of the buffers of a training step; the list with their lifetimes is in schedule/effects.h.
#pragma once

#include "schedule/effects.h"

namespace penstock::schedule {

constexpr BufferId ParameterBuffer(Unit unit) {
  return {BufferClass::parameter, Slot::value, Tier::device, 0, unit, 0, -1};
}
constexpr BufferId OptimizerBuffer(Unit unit) {
  return {BufferClass::optimizer_state, Slot::value, Tier::device, 0, unit, 0, -1};
}
// `use`: index of the use, or kTotalPart.
constexpr BufferId GradientBuffer(Unit unit, int16_t use) {
  return {BufferClass::gradient, Slot::value, Tier::device, 0, unit, use, -1};
}
// The gradient that norm and update read.
inline BufferId FinalGradient(const ParameterUnit& unit) {
  return GradientBuffer(unit.unit, unit.shared() ? kTotalPart : int16_t{0});
}
// Boundary buffers are named after the stage that produces them: the value after edge.from, the gradient after edge.to.
inline BufferId BoundaryValue(const Schedule& s, int edge, int micro_batch) {
  return {BufferClass::boundary,      Slot::value, Tier::device, 0, {0, s.graph.edges()[edge].from},
          static_cast<int16_t>(edge), micro_batch};
}
inline BufferId BoundaryGradient(const Schedule& s, int edge, int micro_batch) {
  return {BufferClass::boundary,         Slot::boundary_gradient,    Tier::device, 0,
          {0, s.graph.edges()[edge].to}, static_cast<int16_t>(edge), micro_batch};
}
constexpr BufferId StageBuffer(Slot slot, int stage, int micro_batch) {
  return {BufferClass::activation, slot, Tier::device, 0, {0, static_cast<uint16_t>(stage)}, 0, micro_batch};
}
constexpr BufferId SavedInputs(int stage, int m) { return StageBuffer(Slot::saved_inputs, stage, m); }
constexpr BufferId SavedGraph(int stage, int m) { return StageBuffer(Slot::saved_graph, stage, m); }
constexpr BufferId WeightStash(int stage, int m) { return StageBuffer(Slot::weight_stash, stage, m); }
constexpr BufferId LossBuffer(int stage, int m) {
  return {BufferClass::statistic, Slot::loss, Tier::device, 0, {0, static_cast<uint16_t>(stage)}, 0, m};
}
constexpr BufferId NormBuffer(Unit unit) { return {BufferClass::statistic, Slot::norm, Tier::device, 0, unit, 0, -1}; }
constexpr BufferId GatheredBuffer() { return {BufferClass::statistic, Slot::gathered, Tier::device, 0, {}, 0, -1}; }
constexpr BufferId VerdictBuffer() { return {BufferClass::statistic, Slot::verdict, Tier::device, 0, {}, 0, -1}; }

}  // namespace penstock::schedule
