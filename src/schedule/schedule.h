// src/schedule/schedule.h
//
// A schedule: for every rank the list of things it does in one step, in program order. Run one by one with buffered
// sends, the lists mean what they say (the reference semantics); streams only relax it: an action starts when it is
// first in its stream and its hazards are over.
// Plain data; whoever has it owns it. Reading from several threads is safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/action.h"
#include "schedule/contract.h"
#include "schedule/holders.h"
#include "schedule/route.h"
#include "schedule/stage_graph.h"

namespace penstock::schedule {

// A size is a symbol until the step is bound (ragged micro-batches); `upper_bound` is what the plan counts with.
struct Size {
  std::string symbol;
  int64_t upper_bound = 0;  // bytes
  friend bool operator==(const Size&, const Size&) = default;
};

// What the effects of a stage's actions depend on besides their keys.
struct StageOptions {
  bool recompute = false;  // forward keeps its inputs only; a recompute action precedes the backward
  friend bool operator==(const StageOptions&, const StageOptions&) = default;
};

struct Schedule {
  std::string name;  // of the builder
  StageGraph graph;
  Route route;
  Holders holders;
  Contract contract;
  std::vector<StageOptions> stage_options;   // [stage]
  std::vector<std::vector<int32_t>> groups;  // ranks, ascending
  std::vector<Size> sizes{Size{}};           // [SizeId]; 0 is "no bytes"
  std::vector<ActionRef> edges;              // targets of Action::extra_edges: what must have ended before
  std::vector<std::vector<Action>> ranks;    // [rank] program order
  // Identical replicas folded into one: every rank stands for `copies` ranks that do the same with micro-batches of
  // their own, and every group for the ranks of all copies together. Only simulated, never run.
  int32_t copies = 1;

  int num_ranks() const { return static_cast<int>(ranks.size()); }
  int num_stages() const { return graph.num_stages(); }
  int num_micro_batches() const { return route.num_micro_batches(); }
  const Action& at(ActionRef ref) const { return ranks[ref.rank][ref.index]; }
  int64_t num_actions() const;
  // Forward, recompute and backward alone: what the passes make a step of.
  bool is_compute_only() const;
  // Ranks of a group, those of all copies together.
  int64_t group_size(int32_t group) const { return static_cast<int64_t>(groups[group].size()) * copies; }
  // Is the rank in this group? The group exists.
  bool HasRank(int32_t group, int rank) const;
  // Index of the group with exactly these ranks (ascending, unique), added when it is new.
  int32_t GroupOf(const std::vector<int32_t>& group_ranks);
  // Index of the size with this symbol, added when it is new (its bound then grows to the larger one).
  SizeId SizeOf(const std::string& symbol, int64_t upper_bound);
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace penstock::schedule
