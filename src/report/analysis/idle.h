// src/report/analysis/idle.h
//
// The gaps in the compute stream of every rank, and what each waited for.
//
// A measured timeline says where a rank was blocked (Event::waited): those parts of a gap have a blocker, the rest is
// the host's. A predicted one has no such marks: what an action did not start for is the last of its inputs, and the
// whole gap is that input's. Inputs are found by key: the receive of the boundary that the action reads; where the
// schedule has no messages, the compute of the neighbouring stage; else the last collective of the same unit, or the
// last collective, receive or copy before it in program order.
#pragma once

#include <cstdint>
#include <vector>

#include "report/analysis/step.h"
#include "schedule/stage_graph.h"

namespace penstock::report::analysis {

enum class Blocker : uint8_t { none, message, collective, copy };

struct Gap {
  int32_t rank = 0;
  double start = 0, end = 0;
  Blocker blocker = Blocker::none;
  int32_t peer = -1;   // whose compute made the message, or the last to join the collective
  double ready = 0;    // when that compute ended, or that rank joined: before, the peer is waited for; after, the link
  int32_t event = -1;  // index of the event that waited; -1: at the end of the step
  int32_t cause = -1;  // index of the receive, collective or copy waited for, or of the compute on the peer; -1: none
  double seconds() const { return end - start; }
};

// Did a wait of `waited` seconds end because something arrived that had been on its way for `transfer`? Asking for what
// lies there already takes a moment, too; a wait that is short beside the transfer is taken for that.
constexpr bool EndedByArrival(double waited, double transfer) { return waited >= 0.05 * transfer; }

// [rank] ascending and disjoint; with the work of the compute stream they tile the step.
std::vector<std::vector<Gap>> FindGaps(const schedule::Timeline& timeline, const StepEvents& step,
                                       const schedule::StageGraph& graph);

// Messages of a step that have both sides.
struct Transfer {
  int32_t from = 0, to = 0;
  int32_t send = -1, recv = -1;  // indices of events
  double ready = 0;              // the producing compute ended (where it is not known: the send began)
  double arrival = 0;            // at the latest: the receive ended
  // Somebody was waiting when it arrived (EndedByArrival), so `arrival` is when it did; else it lay there, nobody knows
  // since when.
  bool observed = false;
};
std::vector<Transfer> TransfersOf(const schedule::Timeline& timeline, const StepEvents& step,
                                  const schedule::StageGraph& graph);

// When the last member joined each collective of a step.
struct Meeting {
  int32_t last_rank = 0;
  double joined = 0;
};
// [event] of the timeline for which it is a collective of this step; others have last_rank -1.
std::vector<Meeting> MeetingsOf(const schedule::Timeline& timeline, const StepEvents& step);

}  // namespace penstock::report::analysis
