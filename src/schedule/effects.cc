#include "schedule/effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/buffers.h"
#include "schedule/operators.h"

namespace penstock::schedule {
namespace {

constexpr std::array<std::string_view, kSlotCount> kSlotNames = {
    "value", "boundary gradient", "saved inputs", "saved graph", "weight stash", "loss", "norm", "gathered", "verdict"};

class Collector {
 public:
  // `uses`: those of the action's stage, where it is a stage's.
  Collector(const Schedule& schedule, const std::vector<UseRef>& uses, std::vector<Effect>& effects)
      : s_(schedule), uses_(uses), effects_(effects) {}

  void Read(BufferId b) { effects_.push_back({b, Access::read}); }
  void Write(BufferId b) { effects_.push_back({b, Access::write}); }
  void Allocate(BufferId b) { effects_.push_back({b, Access::allocate}); }
  void Accumulate(BufferId b) { effects_.push_back({b, Access::accumulate}); }
  void Free(BufferId b) { effects_.push_back({b, Access::free}); }

  void ReadParameters() {
    for (const UseRef use : uses_) Read(ParameterBuffer(s_.holders.units[use.unit].unit));
  }
  void AccumulateGradients() {
    for (const UseRef use : uses_)
      Accumulate(GradientBuffer(s_.holders.units[use.unit].unit, static_cast<int16_t>(use.use)));
  }

  void Forward(int stage, int m) {
    ReadParameters();
    for (const int e : s_.graph.inputs(stage)) Read(BoundaryValue(s_, e, m));
    Allocate(s_.stage_options[stage].recompute ? SavedInputs(stage, m) : SavedGraph(stage, m));
    for (const int e : s_.graph.outputs(stage)) Allocate(BoundaryValue(s_, e, m));
    if (s_.graph.is_last(stage)) Allocate(LossBuffer(stage, m));
    for (const int e : s_.graph.inputs(stage)) Free(BoundaryValue(s_, e, m));
  }
  void Recompute(int stage, int m) {
    ReadParameters();
    Read(SavedInputs(stage, m));
    Allocate(SavedGraph(stage, m));
    Free(SavedInputs(stage, m));
  }
  void BackwardInput(int stage, int m, bool stash) {
    ReadParameters();
    Read(SavedGraph(stage, m));
    for (const int e : s_.graph.outputs(stage)) Read(BoundaryGradient(s_, e, m));
    if (stash) Allocate(WeightStash(stage, m));
    for (const int e : s_.graph.inputs(stage)) Allocate(BoundaryGradient(s_, e, m));
    AccumulateGradients();
    Free(SavedGraph(stage, m));
    for (const int e : s_.graph.outputs(stage)) Free(BoundaryGradient(s_, e, m));
  }
  void BackwardWeight(int stage, int m) {
    Read(WeightStash(stage, m));
    AccumulateGradients();
    Free(WeightStash(stage, m));
  }
  void Update(const Action& action) {
    const ParameterUnit& unit = s_.holders.units[action.key.unit.stage];
    Read(FinalGradient(unit));
    if (action.guard >= 0) Read(VerdictBuffer());
    Write(ParameterBuffer(unit.unit));
    Write(OptimizerBuffer(unit.unit));
    Free(FinalGradient(unit));
  }

 private:
  const Schedule& s_;
  const std::vector<UseRef>& uses_;
  std::vector<Effect>& effects_;
};

void Collect(const Schedule& schedule, const std::vector<UseRef>& uses, int rank, const Action& action,
             std::vector<Effect>& effects) {
  Collector collect(schedule, uses, effects);
  const int stage = action.key.unit.stage;
  const int m = action.key.micro_batch;
  switch (action.key.kind) {
    case Kind::forward:
      collect.Forward(stage, m);
      return;
    case Kind::recompute:
      collect.Recompute(stage, m);
      return;
    case Kind::backward:
      collect.BackwardInput(stage, m, /*stash=*/false);
      return;
    case Kind::backward_input:
      collect.BackwardInput(stage, m, /*stash=*/true);
      return;
    case Kind::backward_weight:
      collect.BackwardWeight(stage, m);
      return;
    case Kind::update:
      collect.Update(action);
      return;
    case Kind::check:
    case Kind::task:
    case Kind::send:
    case Kind::recv:
    case Kind::collective:
    case Kind::copy:
      OpOf(action.key.op).effects(schedule, rank, action, effects);
      return;
  }
}

}  // namespace

std::string ToString(const BufferId& b) {
  std::string text(b.slot == Slot::value ? Name(b.buffer_class) : kSlotNames[static_cast<size_t>(b.slot)]);
  text += fmt::format(" of {}", b.unit.stage);
  if (b.micro_batch >= 0) text += fmt::format(".{}", b.micro_batch);
  if (b.buffer_class == BufferClass::boundary) text += fmt::format(" edge {}", b.part);
  if (b.buffer_class == BufferClass::gradient) text += b.part == kTotalPart ? " total" : fmt::format(" use {}", b.part);
  if (b.step != 0) text += fmt::format(" +{}", b.step);
  if (b.tier != Tier::device) text += fmt::format(" on {}", Name(b.tier));
  return text;
}

Lifetime LifetimeOf(BufferClass buffer_class) {
  switch (buffer_class) {
    case BufferClass::parameter:
    case BufferClass::optimizer_state:
    case BufferClass::rows:
      return Lifetime::persistent;
    case BufferClass::statistic:
      return Lifetime::whole_step;
    case BufferClass::gradient:
    case BufferClass::activation:
    case BufferClass::boundary:
    case BufferClass::message:
      return Lifetime::inside_step;
  }
  return Lifetime::inside_step;
}

std::vector<UseRef> UsesOfStage(const Schedule& schedule, int stage) {
  std::vector<UseRef> uses;
  const auto& units = schedule.holders.units;
  if (stage < static_cast<int>(units.size()) && !units[stage].uses.empty()) uses.push_back({stage, 0});
  for (size_t u = schedule.num_stages(); u < units.size(); ++u)
    for (size_t i = 0; i < units[u].uses.size(); ++i)
      if (units[u].uses[i].stage == stage) uses.push_back({static_cast<int>(u), static_cast<int>(i)});
  return uses;
}

void AppendEffects(const Schedule& schedule, int rank, const Action& action, std::vector<Effect>& effects) {
  const bool of_stage = IsComputeKind(action.key.kind);
  Collect(schedule, of_stage ? UsesOfStage(schedule, action.key.unit.stage) : std::vector<UseRef>{}, rank, action,
          effects);
}

EffectLister::EffectLister(const Schedule& schedule) : schedule_(schedule) {
  for (int stage = 0; stage < schedule.num_stages(); ++stage) uses_.push_back(UsesOfStage(schedule, stage));
}

void EffectLister::Append(int rank, const Action& action, std::vector<Effect>& effects) const {
  static const std::vector<UseRef> kNone;
  Collect(schedule_, IsComputeKind(action.key.kind) ? uses_[action.key.unit.stage] : kNone, rank, action, effects);
}

}  // namespace penstock::schedule
