#include "schedule/passes/reduce.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/effects.h"
#include "schedule/passes/make_action.h"

namespace penstock::schedule {
namespace {

class Walk {
 public:
  Walk(Schedule& schedule, const LowerSpec& spec)
      : s_(schedule), next_(schedule.ranks.size()), out_(schedule.ranks.size()), left_(schedule.num_stages()) {
    for (size_t u = 0; u < s_.holders.units.size(); ++u)
      unit_bytes_.push_back(spec.unit_bytes.empty() ? SizeId{0}
                                                    : s_.SizeOf(fmt::format("gradient {}", u), spec.unit_bytes[u]));
    for (const auto& list : s_.ranks)
      for (const Action& action : list)
        if (HalvesOf(action.key.kind) != kNoHalf) ++left_[action.key.unit.stage];
    uses_left_.resize(s_.holders.units.size());
    for (size_t u = 0; u < uses_left_.size(); ++u) uses_left_[u] = s_.holders.units[u].uses.size();
  }

  void Run() {
    int64_t left = s_.num_actions();
    for (int stage = 0; stage < s_.num_stages(); ++stage)
      if (left_[stage] == 0) StageIsComplete(stage);
    while (left > 0) {
      EmitPending(/*sends_first=*/true);
      int64_t emitted = 0;
      for (size_t r = 0; r < s_.ranks.size(); ++r) emitted += Advance(static_cast<int>(r));
      if (emitted == 0)
        throw UserError("gradients cannot be reduced: the messages of the schedule deadlock: {}", Blocked());
      left -= emitted;
    }
    EmitPending(/*sends_first=*/false);
    s_.ranks = std::move(out_);
  }

 private:
  const Action* Head(int rank) const {
    return next_[rank] < s_.ranks[rank].size() ? &s_.ranks[rank][next_[rank]] : nullptr;
  }

  // Emits the head of `rank` if it can go; a send goes together with its receive. Returns the actions emitted.
  int Advance(int rank) {
    const Action* action = Head(rank);
    if (action == nullptr || action->key.kind == Kind::recv) return 0;
    if (action->key.kind == Kind::send) {
      const int peer = action->peer_or_group;
      const Action* recv = Head(peer);
      if (recv == nullptr || recv->key.kind != Kind::recv || recv->peer_or_group != rank) return 0;
      Take(rank);
      Take(peer);
      return 2;
    }
    const Key key = action->key;
    Take(rank);
    if (HalvesOf(key.kind) != kNoHalf && --left_[key.unit.stage] == 0) StageIsComplete(key.unit.stage);
    return 1;
  }

  void Take(int rank) { out_[rank].push_back(s_.ranks[rank][next_[rank]++]); }

  void StageIsComplete(int stage) {
    for (const UseRef ref : UsesOfStage(s_, stage)) {
      const ParameterUnit& unit = s_.holders.units[ref.unit];
      const int32_t group = unit.uses[ref.use].group;
      if (s_.group_size(group) > 1)
        pending_.push_back(MakeCollective(ops::kReduce, unit.unit, ref.use, group, unit_bytes_[ref.unit]));
      if (--uses_left_[ref.unit] == 0 && unit.shared())
        pending_.push_back(MakeCollective(ops::kSumUses, unit.unit, 0, unit.group, unit_bytes_[ref.unit]));
    }
  }

  void EmitPending(bool sends_first) {
    if (pending_.empty()) return;
    std::vector<Action> later;
    std::vector<bool> waits(
        s_.ranks.size());  // ranks of a collective in `later`: what became ready after it stays behind
    for (const Action& action : pending_) {
      const std::vector<int32_t>& group = s_.groups[action.peer_or_group];
      const bool wait = std::any_of(group.begin(), group.end(), [&](int32_t r) {
        const Action* head = Head(r);
        return waits[r] || (sends_first && head != nullptr && head->key.kind == Kind::send);
      });
      if (wait) {
        later.push_back(action);
        for (const int32_t r : group) waits[r] = true;
      } else {
        for (const int32_t r : group) out_[r].push_back(action);
      }
    }
    pending_ = std::move(later);
  }

  std::string Blocked() const {
    std::string text;
    for (size_t r = 0; r < s_.ranks.size(); ++r)
      if (const Action* action = Head(static_cast<int>(r)))
        text += fmt::format("{}rank {} waits at '{}'", text.empty() ? "" : "; ", r, ToString(*action));
    return text;
  }

  Schedule& s_;
  std::vector<SizeId> unit_bytes_;
  std::vector<size_t> next_;
  std::vector<std::vector<Action>> out_;
  std::vector<int64_t> left_;      // [stage] backward halves that are not emitted yet, over all ranks
  std::vector<size_t> uses_left_;  // [unit] uses whose stage is not complete
  std::vector<Action> pending_;    // collectives that can go, in the order in which they became ready
};

}  // namespace

void ReduceGradients(Schedule& schedule, const LowerSpec& spec) { Walk(schedule, spec).Run(); }

}  // namespace penstock::schedule
