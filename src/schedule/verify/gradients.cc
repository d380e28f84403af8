#include "schedule/verify/gradients.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "schedule/effects.h"
#include "schedule/operators.h"

namespace penstock::schedule::verify {
namespace {

class Checker {
 public:
  Checker(const Schedule& schedule, const VerifyOptions& options, Faults& faults)
      : s_(schedule), options_(options), faults_(faults), held_(schedule.ranks.size()) {
    const auto& units = s_.holders.units;
    first_use_.push_back(0);
    for (const ParameterUnit& unit : units)
      first_use_.push_back(first_use_.back() + static_cast<int>(unit.uses.size()));
    for (size_t u = 0; u < units.size(); ++u)
      if (!units[u].uses.empty())
        for (const int32_t r : s_.groups[units[u].group]) held_[r].push_back(static_cast<int>(u));
    last_contribution_.assign(s_.num_stages(), -1);
    reduced_.assign(first_use_.back(), -1);
    summed_.assign(units.size(), -1);
    updates_.assign(units.size(), 0);
    is_reduce_ = FindOp(ops::kReduce);
    is_sum_ = FindOp(ops::kSumUses);
    is_norm_ = FindOp(ops::kNorm);
    is_gather_ = FindOp(ops::kGatherStatistics);
  }

  void Rank(int rank) {
    rank_ = rank;
    const auto& list = s_.ranks[rank];
    Reset(list);
    for (int i = 0; i < static_cast<int>(list.size()); ++i)
      if (HalvesOf(list[i].key.kind) != kNoHalf) last_contribution_[list[i].key.unit.stage] = i;
    for (int i = 0; i < static_cast<int>(list.size()); ++i) Check(list[i], i);
    if (!options_.expect_updates) return;
    for (const int u : held_[rank])
      if (updates_[u] == 0)
        faults_.Add(FaultCode::missing_update, {rank, -1}, "rank {} holds parameter unit {} and does not update it",
                    rank, u);
  }

 private:
  void Reset(const std::vector<Action>& list) {
    for (const int u : held_[rank_]) {
      std::fill(reduced_.begin() + first_use_[u], reduced_.begin() + first_use_[u + 1], -1);
      summed_[u] = -1;
      updates_[u] = 0;
      for (const ParameterUse& use : s_.holders.units[u].uses) last_contribution_[use.stage] = -1;
    }
    check_of_.clear();
    last_check_ = -1;
    for (int i = 0; i < static_cast<int>(list.size()); ++i)
      if (list[i].key.kind == Kind::check) last_check_ = i;
  }

  void Check(const Action& action, int i) {
    const Key& key = action.key;
    const int u = key.unit.stage;
    if (action.guard >= 0) CheckGuard(action, i);
    CheckRanks(action, i);
    if (key.kind == Kind::check) {
      check_of_.emplace(key.part, i);
    } else if (key.kind == Kind::update) {
      CheckUpdate(action, i);
    } else if (key.op == is_norm_ && key.kind == Kind::task) {
      if (const auto reason = NotFinal(u, i)) Add(FaultCode::updated_too_early, action, i, *reason);
    } else if (key.op == is_reduce_ && key.kind == Kind::collective) {
      int& reduced = reduced_[first_use_[u] + key.part];
      if (const auto reason = Incomplete(u, key.part, i)) Add(FaultCode::reduced_too_early, action, i, *reason);
      if (reduced >= 0) Add(FaultCode::duplicate_compute, action, i, "the same use was reduced before");
      if (summed_[u] >= 0) Add(FaultCode::reduced_too_early, action, i, "the uses of the unit were summed before it");
      reduced = i;
    } else if (key.op == is_sum_ && key.kind == Kind::collective) {
      for (size_t use = 0; use < s_.holders.units[u].uses.size(); ++use)
        if (const auto reason = NotReduced(u, static_cast<int>(use), i))
          Add(FaultCode::reduced_too_early, action, i, *reason);
      if (summed_[u] >= 0) Add(FaultCode::duplicate_compute, action, i, "the uses were summed before");
      summed_[u] = i;
    }
  }

  void CheckRanks(const Action& action, int i) {
    const Key& key = action.key;
    const int u = key.unit.stage;
    const auto& units = s_.holders.units;
    if (key.kind == Kind::update || (key.kind == Kind::task && key.op == is_norm_)) {
      if (!Here(units[u].group)) Add(FaultCode::route, action, i, "the rank does not hold the unit");
    } else if (key.kind == Kind::collective) {
      const auto& ranks = s_.groups[action.peer_or_group];
      if (key.op == is_reduce_ && ranks != s_.groups[units[u].uses[key.part].group]) {
        Add(FaultCode::route, action, i, fmt::format("the use is held by group {}", units[u].uses[key.part].group));
      } else if (key.op == is_sum_ && ranks != s_.groups[units[u].group]) {
        Add(FaultCode::route, action, i, fmt::format("the unit is held by group {}", units[u].group));
      } else if (key.op == is_gather_ && static_cast<int>(ranks.size()) != s_.num_ranks()) {
        Add(FaultCode::route, action, i,
            fmt::format("the statistics of {} of {} ranks are gathered", ranks.size(), s_.num_ranks()));
      }
    }
  }

  void CheckUpdate(const Action& action, int i) {
    const int u = action.key.unit.stage;
    if (const auto reason = NotFinal(u, i)) Add(FaultCode::updated_too_early, action, i, *reason);
    if (action.guard < 0 && last_check_ > i)
      Add(FaultCode::updated_too_early, action, i, "the check of the step comes after it");
    if (++updates_[u] == 2) Add(FaultCode::duplicate_compute, action, i, "the unit was updated before");
  }

  void CheckGuard(const Action& action, int i) {
    if (check_of_.count(action.guard)) return;
    const bool update = action.key.kind == Kind::update;
    Add(update ? FaultCode::updated_too_early : FaultCode::malformed, action, i,
        fmt::format("no check sets predicate {} before it", action.guard));
  }

  void Add(FaultCode code, const Action& action, int i, const std::string& reason) {
    faults_.Add(code, {rank_, i}, "'{}' on rank {} (action {}): {}", ToString(action), rank_, i, reason);
  }

  bool Here(int32_t group) const { return std::binary_search(s_.groups[group].begin(), s_.groups[group].end(), rank_); }

  // Is a contribution of this rank to the use still to come at action i?
  std::optional<std::string> Incomplete(int u, int use, int i) const {
    const int last = last_contribution_[s_.holders.units[u].uses[use].stage];
    if (last <= i) return std::nullopt;
    return fmt::format("use {} of unit {} is not complete: '{}' (action {}) comes later", use, u,
                       ToString(s_.ranks[rank_][last]), last);
  }
  std::optional<std::string> NotReduced(int u, int use, int i) const {
    const ParameterUse& of = s_.holders.units[u].uses[use];
    if (!Here(of.group)) return std::nullopt;
    if (s_.groups[of.group].size() == 1) return Incomplete(u, use, i);
    if (reduced_[first_use_[u] + use] >= 0) return std::nullopt;
    return fmt::format("use {} of unit {} (stage {}) is not reduced over its {} holders yet", use, u, of.stage,
                       s_.groups[of.group].size());
  }
  std::optional<std::string> NotFinal(int u, int i) const {
    const ParameterUnit& unit = s_.holders.units[u];
    if (!unit.shared()) return NotReduced(u, 0, i);
    if (summed_[u] >= 0) return std::nullopt;
    return fmt::format("the {} uses of shared unit {} are not summed yet", unit.uses.size(), u);
  }

  const Schedule& s_;
  const VerifyOptions& options_;
  Faults& faults_;
  OpId is_reduce_ = kNoOp, is_sum_ = kNoOp, is_norm_ = kNoOp, is_gather_ = kNoOp;
  std::vector<std::vector<int>> held_;  // [rank] units
  std::vector<int> first_use_;          // [unit] in reduced_
  // Of the rank in work: indices in its list, -1 where there is none (yet).
  int rank_ = 0;
  std::vector<int> last_contribution_;     // [stage]
  std::vector<int> reduced_;               // [use of all units]
  std::vector<int> summed_;                // [unit]
  std::vector<int> updates_;               // [unit] how many
  std::unordered_map<int, int> check_of_;  // predicate -> action
  int last_check_ = -1;
};

}  // namespace

void CheckGradients(const Schedule& schedule, const VerifyOptions& options, Faults& faults) {
  Checker checker(schedule, options, faults);
  for (int r = 0; r < schedule.num_ranks(); ++r) checker.Rank(r);
}

}  // namespace penstock::schedule::verify
