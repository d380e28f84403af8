// src/cost/fsdp_search.h
//
// Grid search over what FSDP leaves open: share of activations kept, ZeRO stage, sequence, number of ranks. Every point
// takes as many whole sequences as fit: throughput never falls with the tokens of a rank, so fewer are never better.
// Threads: functions only. Errors: UserError for an empty grid.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cost/fsdp.h"

namespace penstock::cost {

enum class FsdpObjective : uint8_t { mfu, tokens_per_second };  // of one rank

struct FsdpGrid {
  std::vector<double> kept = Twentieths();
  std::vector<int> zero = {1, 2, 3};
  std::vector<double> sequences{};  // empty: the choice's
  std::vector<int64_t> ranks{};     // empty: the cluster's. A shard group that does not divide a number leaves it out
  static std::vector<double> Twentieths();  // 0, 0.05 .. 1
};

struct FsdpSearchResult {
  bool found = false;
  FsdpChoice choice;
  FsdpCluster cluster;
  FsdpEstimate estimate;
  int64_t evaluated = 0, feasible = 0;
  // Throughput of the best grid point when one resource is doubled (latency: halved) over that of this one, by
  // FsdpBound. All 1 when nothing was found.
  std::array<double, 4> gain{1, 1, 1, 1};
  // The resource with the largest gain; memory when nothing was found.
  FsdpBound binding = FsdpBound::memory;
};

// Everything that the grid does not vary is taken from `base`; its tokens are chosen here.
FsdpSearchResult SearchFsdp(const FsdpModel& model, const FsdpCluster& cluster, const FsdpChoice& base,
                            const FsdpGrid& grid, FsdpObjective objective = FsdpObjective::mfu);

std::string Explain(const FsdpModel& model, const FsdpSearchResult& result);

}  // namespace penstock::cost
