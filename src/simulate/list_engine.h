// src/simulate/list_engine.h
//
// In-order replay of a schedule with prices: when does every action start and end? An action starts when it is first
// in its stream and its hazards are over (schedule/effects.h). A rank has one compute stream, one channel per peer and
// direction, one queue per group. Sends do not block; a receive ends when its message is there; a collective starts
// when its last member is ready and ends for all at once. So under channelled transport; under eager transport a rank
// does one thing after the other, under blocking transport a send and its receive start and end together, and all
// messages and collectives of a rank wait for each other (simulate/action_graph.h).
//
// A schedule without messages (compute only, as builders write it) takes its dependencies between ranks from the stage
// graph: the forward of a stage waits for the forwards that feed it, the backward for its own forward and the
// backwards of the stages it feeds, with the latency of the message that would cross.
//
// Time is exact (Rational: closed forms) or double (seconds). Linear in actions, effects and edges; 10^6 actions take
// a few seconds. Throws UserError that names the blocked actions when the schedule does not finish (deadlock,
// unmatched message); it never loops. It trusts lifetimes and coverage: verify first (schedule/verify.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rational.h"
#include "schedule/costs.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace penstock::simulate {

template <typename Time>
struct Interval {
  Time start = 0;
  Time end = 0;
};

template <typename Time>
struct Replay {
  std::vector<std::vector<Interval<Time>>> times;  // [rank][index], as Schedule::ranks
  Time makespan = 0;                               // all ranks wait for the last: the barrier of a synchronous step
  Time max_span = 0;         // largest last end - first start of forward and backward work over the ranks
  Time bubble_fraction = 0;  // share of ranks x makespan in which a rank's compute stream is idle
  // Micro-batches whose activations are alive at once, in shares of the rank (one of its n stages counts 1/n): from
  // the start of forward to the end of backward or backward_weight.
  std::vector<Rational> peak_micro_batches;
  int64_t actions = 0;
};

// Times alone, [rank][index]. Instantiated for Rational and double.
template <typename Time>
using Times = std::vector<std::vector<Interval<Time>>>;
template <typename Time>
Times<Time> TimesInOrder(const schedule::Schedule& schedule, const schedule::ActionCosts<Time>& costs,
                         schedule::Transport transport = schedule::Transport::channelled);

// The same by the graph of all dependencies (simulate/action_graph.h), which TimesInOrder only builds when a schedule
// does not finish in program order: its reference, and slower.
template <typename Time>
Times<Time> TimesByGraph(const schedule::Schedule& schedule, const schedule::ActionCosts<Time>& costs,
                         schedule::Transport transport = schedule::Transport::channelled);

// What follows from the times of every action.
template <typename Time>
Replay<Time> Summarise(const schedule::Schedule& schedule, Times<Time> times);

template <typename Time>
Replay<Time> ReplayInOrder(const schedule::Schedule& schedule, const schedule::ActionCosts<Time>& costs,
                           schedule::Transport transport = schedule::Transport::channelled);

// One predicted event per action, times as doubles. Memory events are not filled in.
template <typename Time>
schedule::Timeline ToTimeline(const schedule::Schedule& schedule, const Replay<Time>& replay, std::string title);

}  // namespace penstock::simulate
