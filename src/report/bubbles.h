// src/report/bubbles.h
//
// Why ranks did not compute. Seconds.
//
// A step lasts from the first start to the last end over all ranks. Of it, what the compute stream of a rank does not
// fill is a bubble, and each moment of it has one cause, the first of these that fits:
//   warm_up     before the first layer computation (forward, recompute, backward) of the rank in the step
//   drain       after its last one, while other ranks still compute layers, and after its last work until the end
//   collective  all members of the collective that it waits for have joined, and it is not over
//   imbalance   the rank that it waits for (the producer of its input, the last to join a collective) is not done yet
//   message     the producer is done, but the message is not there
//   offload     a copy between the tiers of the rank
//   host        nothing is waited for: the host's work between actions, handing over a message included
// A rank that has done its layers and waits in a collective for a rank of the same stages (another replica) is held up
// by imbalance, not by the drain.
// busy + sum of the causes = length of the step, for every rank.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "schedule/stage_graph.h"
#include "schedule/timeline.h"

namespace penstock::report {

enum class BubbleCause : uint8_t { warm_up, drain, imbalance, message, collective, offload, host };
inline constexpr int kBubbleCauseCount = 7;
inline constexpr std::array<std::string_view, kBubbleCauseCount> kBubbleCauseNames = {
    "warm-up", "drain", "imbalance", "message", "collective", "offload", "host"};
constexpr std::string_view Name(BubbleCause c) { return kBubbleCauseNames[static_cast<size_t>(c)]; }

// A moment in which a rank did not compute.
struct Bubble {
  int32_t rank = 0;
  int32_t step = 0;
  BubbleCause cause = BubbleCause::host;
  int32_t peer = -1;   // the rank waited for; -1: none, or not known
  int32_t event = -1;  // index in Timeline::events of what came after it; -1: the end of the step
  double start = 0, end = 0;
  double seconds() const { return end - start; }
};

struct RankBubbles {
  double busy = 0;
  std::array<double, kBubbleCauseCount> by_cause{};
  std::map<int32_t, double> by_peer;  // imbalance and message, by the rank waited for; only those waited for
  std::pair<int32_t, double> longest_wait() const;  // the entry of by_peer with most; {-1, 0}: none
  double total() const;                             // of the causes
};

struct Bubbles {
  int64_t steps = 0;
  double makespan = 0;             // sum over the steps
  std::vector<RankBubbles> ranks;  // [rank]
  std::vector<Bubble> spans;       // by step, rank, start
  double fraction() const;         // bubbles / (ranks x makespan)
};

// Of all steps of the timeline.
Bubbles FindBubbles(const schedule::Timeline& timeline, const schedule::StageGraph& graph);

}  // namespace penstock::report
