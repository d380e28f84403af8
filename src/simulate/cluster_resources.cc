#include "simulate/cluster_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace penstock::simulate {

using schedule::Action;
using schedule::Kind;
using schedule::Schedule;

ClusterResources::ClusterResources(const Schedule& schedule, const cost::Placement& placement, int threads)
    : placement_(placement), threads_(threads), cores_of_(schedule.num_ranks(), -1) {
  AddCores(schedule);
  AddUplinks(schedule);
  for (const auto& group : schedule.groups) {
    int level = -1;
    for (const int32_t other : group)
      level = std::max(level,
                       placement.cluster().LevelBetween(placement.DeviceOf(group.front()), placement.DeviceOf(other)));
    level_of_group_.push_back(level);
    ring_demand_.push_back(level < 0 ? 0 : RingDemand(group, level));
  }
}

// What each member asks of the ways out of its node: a ring runs over as many of them as it has members in a node, up
// to what the node has (cost/group_link.h), so together its members never ask for more than that.
double ClusterResources::RingDemand(const std::vector<int32_t>& group, int level) const {
  const auto& levels = placement_.cluster().levels;
  int64_t below = 1;
  for (int l = 0; l < level; ++l) below *= levels[l].size;
  std::set<int64_t> nodes;
  for (const int32_t rank : group) nodes.insert(placement_.DeviceOf(rank) / below);
  const auto beside = static_cast<double>(std::max<size_t>(1, group.size() / nodes.size()));
  const double link = levels[level].link.bytes_per_second, cap = levels[level].group_bytes_per_second;
  const double ring = cap > 0 && below > 1 ? std::min(link * beside, cap) : link * beside;
  return ring / beside * static_cast<double>(placement_.tensor());
}

void ClusterResources::AddCores(const Schedule& schedule) {
  const int64_t machine = placement_.devices_per_machine();
  std::map<int64_t, std::vector<int>> ranks_of;  // by machine
  for (int rank = 0; rank < schedule.num_ranks(); ++rank)
    if (placement_.DeviceTypeOf(rank).cores > 0) ranks_of[placement_.DeviceOf(rank) / machine].push_back(rank);
  for (const auto& [index, ranks] : ranks_of) {
    const int cores = placement_.DeviceTypeOf(ranks.front()).cores;
    if (static_cast<int64_t>(ranks.size()) * threads_ * placement_.tensor() <= cores) continue;
    for (const int rank : ranks) cores_of_[rank] = static_cast<int32_t>(resources_.size());
    resources_.push_back(
        {.name = fmt::format("{} cores of machine {}", cores, index), .capacity = static_cast<double>(cores)});
  }
}

void ClusterResources::AddUplinks(const Schedule& schedule) {
  const auto& cluster = placement_.cluster();
  int64_t below = 1;  // devices of a group under the level
  for (const cluster::Level& level : cluster.levels) {
    auto& row = uplinks_.emplace_back(schedule.num_ranks());
    const double capacity = level.group_bytes_per_second;
    const double all = level.link.bytes_per_second * static_cast<double>(below);
    if (below > 1 && capacity > 0 && all > capacity) {
      std::map<int64_t, Uplink> of_group;
      for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
        const int64_t group = placement_.DeviceOf(rank) / below;
        const auto [it, is_new] = of_group.try_emplace(group);
        if (is_new) {
          it->second.out = static_cast<int32_t>(resources_.size());
          resources_.push_back(
              {.name = fmt::format("group {} outwards ({})", group, level.name), .capacity = capacity});
          it->second.in = static_cast<int32_t>(resources_.size());
          resources_.push_back({.name = fmt::format("group {} inwards ({})", group, level.name), .capacity = capacity});
        }
        row[rank] = it->second;
      }
    }
    below *= level.size;
  }
}

void ClusterResources::AppendUses(const Schedule&, int rank, const Action& action,
                                  std::vector<ResourceUse>& uses) const {
  const Kind kind = action.key.kind;
  const auto& levels = placement_.cluster().levels;
  const auto asks = [&](int level) {
    return levels[level].link.bytes_per_second * static_cast<double>(placement_.tensor());
  };
  if (kind == Kind::send) {
    const int level =
        placement_.cluster().LevelBetween(placement_.DeviceOf(rank), placement_.DeviceOf(action.peer_or_group));
    // Out of everything that the two do not share, and into everything.
    for (int l = 0; l <= level; ++l) {
      if (const Uplink& from = uplinks_[l][rank]; from.out >= 0) uses.push_back({from.out, asks(level)});
      if (const Uplink& to = uplinks_[l][action.peer_or_group]; to.in >= 0) uses.push_back({to.in, asks(level)});
    }
    return;
  }
  if (kind == Kind::recv) return;
  if (kind == Kind::collective) {
    const int level = level_of_group_[action.peer_or_group];
    if (level < 0) return;
    if (const Uplink& own = uplinks_[level][rank]; own.out >= 0) {
      uses.push_back({own.out, ring_demand_[action.peer_or_group]});
      uses.push_back({own.in, ring_demand_[action.peer_or_group]});
    }
    return;
  }
  if (cores_of_[rank] >= 0) uses.push_back({cores_of_[rank], static_cast<double>(threads_ * placement_.tensor())});
}

}  // namespace penstock::simulate
