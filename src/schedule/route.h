// src/schedule/route.h
//
// (stage, micro-batch) -> cell. Cells are single ranks here. A route is factored as it is for every layout of a
// data x pipeline mesh: micro-batch -> replica, and (placement of the micro-batch, stage) -> pipeline position;
// rank = replica * pipeline_size + position. Single entries can be overridden (re-routing after a failure).
// Placements (pipeline_schedules.md section 1), p positions, S stages:
//   linear   stage s on position s                (S = p)
//   block    stage s on position s / (S / p)      contiguous runs of stages
//   loop     stage s on position s mod p          interleaved, breadth-first, modular
//   v        s if s < p, else 2p - 1 - s          (S = 2p)
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::schedule {

// Position of every stage. UserError for an unknown name or sizes that do not fit it.
std::vector<int> MakePlacement(std::string_view name, int positions, int stages);
const std::vector<std::string>& PlacementNames();

struct Route {
  int pipeline_size = 1;
  std::vector<std::vector<int>> placements;  // [placement][stage] -> position; one, except in bidirectional pipelines
  std::vector<int32_t> replica_of;           // [micro-batch]
  std::vector<uint8_t> placement_of;         // [micro-batch]; empty: placement 0 for all
  std::map<std::pair<int, int>, int> overrides;  // (stage, micro-batch) -> rank

  int num_micro_batches() const { return static_cast<int>(replica_of.size()); }
  int rank_of(int stage, int micro_batch) const {
    if (!overrides.empty()) {
      const auto it = overrides.find({stage, micro_batch});
      if (it != overrides.end()) return it->second;
    }
    const auto& placement = placements[placement_of.empty() ? 0 : placement_of[micro_batch]];
    return replica_of[micro_batch] * pipeline_size + placement[stage];
  }
  friend bool operator==(const Route&, const Route&) = default;
};

// Contiguous runs of micro-batches, one per replica, sizes as equal as can be, larger first (numerics.md R4):
// 5 over 2 -> 0,0,0,1,1.
std::vector<int32_t> ContiguousReplicas(int micro_batches, int replicas);

}  // namespace penstock::schedule
