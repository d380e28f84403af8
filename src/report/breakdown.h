// src/report/breakdown.h
//
// Where the time of a timeline went. Seconds throughout.
//
// A step lasts from the first start to the last end over all ranks; several steps add up. Of that, per rank:
//   busy     compute stream works: [start + waited, end) of its events
//   wait     not busy, and blocked for a message, a collective or another hazard: receives, collectives, `waited`
//   other    the rest: drain and warm-up without anything to wait for, host work between actions
// bubble = wait + other, as the literature counts it: the share of ranks x makespan in which nothing is computed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/buffer_class.h"
#include "schedule/stage_graph.h"
#include "schedule/timeline.h"

namespace penstock::report {

struct RankTimes {
  double busy = 0, wait = 0, other = 0;
  double total() const { return busy + wait + other; }
};

struct KindTimes {
  std::string name;  // "forward", "collective:reduce"
  int64_t count = 0;
  double seconds = 0;  // work of all ranks, without waiting
  int64_t bytes = 0;
};

// Mean seconds of one micro-batch; 0 where there is none.
struct StageTimes {
  double forward = 0, recompute = 0, backward = 0, backward_input = 0, backward_weight = 0;
};

// Peak of the sum over classes, and how it was composed at that moment; of the device tier.
struct PeakMemory {
  int64_t bytes = 0;
  std::array<int64_t, kBufferClassCount> by_class{};
};

struct Breakdown {
  int64_t steps = 0;
  double makespan = 0;         // sum over the steps
  double bubble_fraction = 0;  // of all ranks
  std::vector<RankTimes> ranks;
  std::vector<KindTimes> kinds;  // by seconds, longest first
  std::vector<StageTimes> stages;
  std::vector<PeakMemory> memory;  // [rank]; empty without memory events
};

Breakdown Analyse(const schedule::Timeline& timeline);

// Avoidable wait of a compute action: the time from when it could have started until it did. It could have started
// when the action before it on its compute stream was over and its inputs were there: the end of the compute that
// produced them, plus the transfer. The transfer of a link is the shortest gap seen on it between the end of a producer
// and the start of its consumer, so a link that is always slow hides its own slowness.
// 0 everywhere in a good run; what remains is the executor's, not the schedule's.
struct AvoidableWait {
  double seconds = 0;
  int32_t event = -1;  // index in Timeline::events
};
// Every compute action that waited more than `tolerance` seconds, longest first.
std::vector<AvoidableWait> AvoidableWaits(const schedule::Timeline& timeline, const schedule::StageGraph& graph,
                                          double tolerance = 0);

}  // namespace penstock::report
