#include "simulate/graph/hazards.h"

#include <algorithm>

namespace penstock::simulate {

using schedule::Access;
using schedule::Action;
using schedule::BufferId;
using schedule::Effect;
using schedule::Slot;
using schedule::Stream;

namespace {

size_t KindOf(const BufferId& id) {
  return static_cast<size_t>(id.buffer_class) * schedule::kSlotCount + static_cast<size_t>(id.slot);
}

}  // namespace

HazardFinder::HazardFinder(const schedule::Schedule& schedule)
    : schedule_(schedule),
      effects_of_(schedule),
      shared_(static_cast<size_t>(kBufferClassCount) * schedule::kSlotCount, false),
      micro_batches_(schedule.num_micro_batches()),
      stages_(schedule.num_stages()),
      edges_(static_cast<int64_t>(schedule.graph.edges().size())),
      units_(static_cast<int64_t>(schedule.holders.units.size())) {
  uses_ = 1;  // and the total
  for (const schedule::ParameterUnit& unit : schedule.holders.units)
    uses_ = std::max(uses_, static_cast<int64_t>(unit.uses.size()) + 1);
  // Values and gradients of edges, three kinds of kept tensors and a loss per (stage, micro-batch); parameter, state
  // and norm of a unit, its gradients; two of the step.
  numbered_.resize(static_cast<size_t>(micro_batches_ * (2 * edges_ + 4 * stages_) + units_ * (3 + uses_) + 2));
  for (int rank = 0; rank < schedule.num_ranks(); ++rank)
    for (const Action& action : schedule.ranks[rank]) {
      if (action.stream == Stream::compute) continue;
      effects_.clear();
      effects_of_.Append(rank, action, effects_);
      for (const Effect& effect : effects_) shared_[KindOf(effect.buffer)] = true;
    }
}

int64_t HazardFinder::Number(const BufferId& id) const {
  if (id.step != 0 || id.tier != Tier::device || id.unit.component != 0) return -1;
  const int64_t m = id.micro_batch, unit = id.unit.stage, part = id.part;
  const auto per_micro_batch = [&](int64_t row, int64_t index, int64_t count) -> int64_t {
    return m >= 0 && m < micro_batches_ && index >= 0 && index < count ? row + index * micro_batches_ + m : -1;
  };
  const int64_t kept = 2 * edges_ * micro_batches_, of_units = kept + 4 * stages_ * micro_batches_;
  const auto of_unit = [&](int64_t row) -> int64_t {
    return unit < units_ && m == -1 ? of_units + row * units_ + unit : -1;
  };
  switch (id.slot) {
    case Slot::value:
      switch (id.buffer_class) {
        case BufferClass::boundary:
          return per_micro_batch(0, part, edges_);
        case BufferClass::parameter:
          return of_unit(0);
        case BufferClass::optimizer_state:
          return of_unit(1);
        case BufferClass::gradient:
          return part + 1 >= 0 && part + 1 < uses_ ? of_unit(3 + part + 1) : -1;
        case BufferClass::activation:
        case BufferClass::message:
        case BufferClass::statistic:
        case BufferClass::rows:
          return -1;
      }
      return -1;
    case Slot::boundary_gradient:
      return per_micro_batch(edges_ * micro_batches_, part, edges_);
    case Slot::saved_inputs:
      return per_micro_batch(kept, unit, stages_);
    case Slot::saved_graph:
      return per_micro_batch(kept + stages_ * micro_batches_, unit, stages_);
    case Slot::weight_stash:
      return per_micro_batch(kept + 2 * stages_ * micro_batches_, unit, stages_);
    case Slot::loss:
      return per_micro_batch(kept + 3 * stages_ * micro_batches_, unit, stages_);
    case Slot::norm:
      return of_unit(2);
    case Slot::gathered:
      return of_units + units_ * (3 + uses_);
    case Slot::verdict:
      return of_units + units_ * (3 + uses_) + 1;
  }
  return -1;
}

HazardFinder::Users& HazardFinder::Find(const BufferId& id, int rank) {
  const int64_t number = Number(id);
  Users& users = number >= 0 ? numbered_[number] : others_[id];
  if (users.rank != rank) users = {.rank = rank};
  return users;
}

const std::vector<std::pair<int32_t, int32_t>>& HazardFinder::Of(int rank) {
  found_.clear();
  readers_.clear();
  others_.clear();
  const auto& list = schedule_.ranks[rank];
  for (int32_t i = 0; i < static_cast<int32_t>(list.size()); ++i) {
    effects_.clear();
    before_.clear();
    effects_of_.Append(rank, list[i], effects_);
    for (const Effect& effect : effects_) {
      if (!shared_[KindOf(effect.buffer)]) continue;
      Users& users = Find(effect.buffer, rank);
      if (users.writer >= 0 && users.writer != i) before_.push_back(users.writer);
      if (effect.access == Access::read) {
        readers_.emplace_back(i, users.first_reader);
        users.first_reader = static_cast<int32_t>(readers_.size()) - 1;
        continue;
      }
      for (int32_t r = users.first_reader; r >= 0; r = readers_[r].second)
        if (readers_[r].first != i) before_.push_back(readers_[r].first);
      users.first_reader = -1;
      users.writer = i;
    }
    std::sort(before_.begin(), before_.end());
    before_.erase(std::unique(before_.begin(), before_.end()), before_.end());
    for (const int32_t b : before_) {
      // Neighbours in the compute stream are ordered already.
      if (list[b].stream != Stream::compute || list[i].stream != Stream::compute) found_.emplace_back(b, i);
    }
  }
  return found_;
}

}  // namespace penstock::simulate
