// src/schedule/verify/lifetimes.h
//
// Walks the list of every rank in program order over the effects of its actions: lifetimes of buffers, the hazards
// between actions, peaks.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/verify/meetings.h"

namespace penstock::schedule::verify {

// Dependencies between actions of one rank: predecessors of node n are nodes[first[n]] .. nodes[first[n + 1]).
struct Hazards {
  std::vector<int64_t> first;
  std::vector<int32_t> nodes;
};

Hazards CheckLifetimes(const Schedule& schedule, const Numbering& numbering, const VerifyOptions& options,
                       Faults& faults, std::vector<RankPeak>& peaks);

}  // namespace penstock::schedule::verify
