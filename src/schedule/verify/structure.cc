#include "schedule/verify/structure.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/operators.h"

namespace penstock::schedule::verify {
namespace {

constexpr ActionRef kNowhere{-1, -1};

class Checker {
 public:
  Checker(const Schedule& schedule, Faults& faults)
      : s_(schedule), faults_(faults), num_operators_(Registry<Operator>::All().size()) {}

  bool Run() {
    if (s_.ranks.empty() || s_.num_actions() == 0)
      return Bad("the schedule is empty: {} ranks, no action", s_.num_ranks());
    if (s_.num_stages() < 1) return Bad("the stage graph has no stage");
    if (static_cast<int>(s_.stage_options.size()) != s_.num_stages())
      return Bad("there are options for {} stages, but {} stages", s_.stage_options.size(), s_.num_stages());
    if (s_.sizes.empty()) return Bad("the table of sizes lacks entry 0 (no bytes)");
    if (!Route() || !Groups() || !Holders()) return false;
    for (const ActionRef& edge : s_.edges)
      if (!Exists(edge))
        return Bad("an edge points to action {} of rank {}, which does not exist", edge.index, edge.rank);
    bool good = true;
    for (int r = 0; r < s_.num_ranks(); ++r)
      for (int i = 0; i < static_cast<int>(s_.ranks[r].size()); ++i) good = Check({r, i}) && good;
    return good;
  }

 private:
  template <typename... Args>
  bool Bad(fmt::format_string<Args...> format, Args&&... args) {
    return BadAt(kNowhere, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  bool BadAt(ActionRef where, fmt::format_string<Args...> format, Args&&... args) {
    faults_.Add(FaultCode::malformed, where, format, std::forward<Args>(args)...);
    return false;
  }

  bool Exists(ActionRef ref) const {
    return ref.rank >= 0 && ref.rank < s_.num_ranks() && ref.index >= 0 &&
           ref.index < static_cast<int>(s_.ranks[ref.rank].size());
  }

  bool Route() {
    const schedule::Route& route = s_.route;
    if (route.pipeline_size < 1) return Bad("the route has a pipeline of {} positions", route.pipeline_size);
    if (route.placements.empty()) return Bad("the route has no placement");
    for (const auto& placement : route.placements) {
      if (static_cast<int>(placement.size()) != s_.num_stages())
        return Bad("a placement has {} stages, the stage graph {}", placement.size(), s_.num_stages());
      for (const int position : placement)
        if (position < 0 || position >= route.pipeline_size)
          return Bad("a placement names position {} of {}", position, route.pipeline_size);
    }
    if (!route.placement_of.empty() && route.placement_of.size() != route.replica_of.size())
      return Bad("the route places {} of {} micro-batches", route.placement_of.size(), route.replica_of.size());
    for (const uint8_t p : route.placement_of)
      if (p >= route.placements.size()) return Bad("the route names placement {} of {}", p, route.placements.size());
    for (const int32_t replica : route.replica_of)
      if (replica < 0 || (replica + 1) * int64_t{route.pipeline_size} > s_.num_ranks())
        return Bad("the route names replica {} of a pipeline of {}, but there are {} ranks", replica,
                   route.pipeline_size, s_.num_ranks());
    for (const auto& [cell, rank] : route.overrides)
      if (rank < 0 || rank >= s_.num_ranks()) return Bad("the route names rank {} of {}", rank, s_.num_ranks());
    return true;
  }

  bool Groups() {
    for (size_t g = 0; g < s_.groups.size(); ++g) {
      const auto& group = s_.groups[g];
      if (group.empty()) return Bad("group {} is empty", g);
      for (size_t i = 0; i < group.size(); ++i) {
        if (group[i] < 0 || group[i] >= s_.num_ranks())
          return Bad("group {} names rank {}, but there are {} ranks", g, group[i], s_.num_ranks());
        if (i > 0 && group[i] <= group[i - 1]) return Bad("the ranks of group {} do not ascend", g);
      }
    }
    return true;
  }

  bool IsGroup(int32_t group) const { return group >= 0 && group < static_cast<int32_t>(s_.groups.size()); }

  bool Holders() {
    const auto& units = s_.holders.units;
    for (size_t u = 0; u < units.size(); ++u) {
      if (units[u].unit.stage != u)
        return Bad("parameter unit {} is at place {} of the holders", units[u].unit.stage, u);
      if (units[u].uses.empty()) continue;
      if (!IsGroup(units[u].group))
        return Bad("the holders of unit {} are group {} of {}", u, units[u].group, s_.groups.size());
      for (const ParameterUse& use : units[u].uses) {
        if (use.stage >= s_.num_stages())
          return Bad("unit {} is used by stage {} of {}", u, use.stage, s_.num_stages());
        if (!IsGroup(use.group)) return Bad("a use of unit {} is in group {} of {}", u, use.group, s_.groups.size());
        for (const int32_t r : s_.groups[use.group])
          if (!s_.HasRank(units[u].group, r)) return Bad("rank {} uses unit {} and does not hold it", r, u);
      }
    }
    return true;
  }

  bool HasUnit(ActionRef ref, const Key& key) {
    const auto& units = s_.holders.units;
    if (key.unit.stage < units.size() && !units[key.unit.stage].uses.empty()) return true;
    return BadAt(ref, "'{}' on rank {} names parameter unit {}, which does not exist", ToString(key), ref.rank,
                 key.unit.stage);
  }

  bool Check(ActionRef ref) {
    const Action& a = s_.at(ref);
    const Key& key = a.key;
    if (static_cast<int>(key.kind) >= kKindCount || key.op > num_operators_)
      return BadAt(ref, "action {} of rank {} has kind {} and operator {}, which do not exist", ref.index, ref.rank,
                   static_cast<int>(key.kind), key.op);
    if (key.unit.component != 0)
      return BadAt(ref, "'{}' on rank {} names component {}; there is one, component 0", ToString(key), ref.rank,
                   key.unit.component);
    const bool needs_op = !IsComputeKind(key.kind) && key.kind != Kind::update;
    if (needs_op != (key.op != kNoOp))
      return BadAt(ref, "'{}' on rank {} {} an operator", ToString(key), ref.rank,
                   needs_op ? "needs" : "does not take");
    if (needs_op) {
      const Kind kind = OpOf(key.op).kind;
      const bool message = kind == Kind::send && key.kind == Kind::recv;
      if (kind != key.kind && !message)
        return BadAt(ref, "'{}' on rank {}: '{}' is an operator of kind {}", ToString(key), ref.rank, OpName(key.op),
                     Name(kind));
    }
    if (a.bytes >= s_.sizes.size())
      return BadAt(ref, "'{}' on rank {} has size {} of {}", ToString(key), ref.rank, a.bytes, s_.sizes.size());
    if (uint64_t{a.extra_edges.first} + a.extra_edges.count > s_.edges.size())
      return BadAt(ref, "'{}' on rank {} has edges beyond the table of {}", ToString(key), ref.rank, s_.edges.size());
    const Stream stream = DefaultStream(key.kind);
    const bool own_queue =
        stream == Stream::send_channel || stream == Stream::recv_channel || stream == Stream::group_queue;
    if (own_queue ? a.stream != stream : a.stream >= Stream::send_channel)
      return BadAt(ref, "'{}' on rank {} cannot be on stream '{}'", ToString(key), ref.rank, Name(a.stream));

    switch (key.kind) {
      case Kind::forward:
      case Kind::backward:
      case Kind::backward_input:
      case Kind::backward_weight:
      case Kind::recompute:
        return StageAndMicroBatch(ref, key);
      case Kind::send:
      case Kind::recv:
        if (a.peer_or_group < 0 || a.peer_or_group >= s_.num_ranks() || a.peer_or_group == ref.rank)
          return BadAt(ref, "'{}' on rank {} names rank {} as its peer", ToString(key), ref.rank, a.peer_or_group);
        if (!StageAndMicroBatch(ref, key)) return false;
        if (key.part < 0 || key.part >= static_cast<int>(s_.graph.edges().size()))
          return BadAt(ref, "'{}' on rank {} names edge {} of {}", ToString(key), ref.rank, key.part,
                       s_.graph.edges().size());
        return true;
      case Kind::collective:
        if (!IsGroup(a.peer_or_group) || !s_.HasRank(a.peer_or_group, ref.rank))
          return BadAt(ref, "'{}' is on rank {}, which is not in group {}", ToString(key), ref.rank, a.peer_or_group);
        if (OpName(key.op) == ops::kReduce || OpName(key.op) == ops::kSumUses) {
          if (!HasUnit(ref, key)) return false;
          const size_t uses = s_.holders.units[key.unit.stage].uses.size();
          if (key.part < 0 || key.part >= static_cast<int>(uses))
            return BadAt(ref, "'{}' on rank {} names use {} of {}", ToString(key), ref.rank, key.part, uses);
        }
        return true;
      case Kind::update:
        return HasUnit(ref, key);
      case Kind::task:
        return OpName(key.op) != ops::kNorm || HasUnit(ref, key);
      case Kind::check:
      case Kind::copy:
        return true;
    }
    return true;
  }

  bool StageAndMicroBatch(ActionRef ref, const Key& key) {
    if (key.unit.stage >= s_.num_stages())
      return BadAt(ref, "'{}' on rank {} names stage {} of {}", ToString(key), ref.rank, key.unit.stage,
                   s_.num_stages());
    if (key.micro_batch < 0 || key.micro_batch >= s_.num_micro_batches())
      return BadAt(ref, "'{}' on rank {} names micro-batch {} of {}", ToString(key), ref.rank, key.micro_batch,
                   s_.num_micro_batches());
    return true;
  }

  const Schedule& s_;
  Faults& faults_;
  const size_t num_operators_;
};

}  // namespace

bool CheckStructure(const Schedule& schedule, Faults& faults) { return Checker(schedule, faults).Run(); }

}  // namespace penstock::schedule::verify
