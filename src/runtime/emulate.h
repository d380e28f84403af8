// src/runtime/emulate.h
//
// Emulated ranks: a thread per rank goes through its list as the executor does (it is the executor), but an action
// lasts as long as the costs say, asleep, and one float travels in each message. Ranks that sleep need no core, so
// dozens of them keep true concurrency on two: what the rules of the executor, the waits and the wake-ups do to a
// schedule of many ranks is measured, not predicted.
//
// Times:   compute, updates, checks and tasks keep the rank's thread for ActionCosts::Duration, whatever their stream.
//          A send keeps its channel for its Duration, and its receive ends ActionCosts::Latency later; a collective
//          lasts as long as the highest Duration of its members says, from the last one on (comm/emulated_links.h).
//          Receives have no price of their own. Actions of one rank that follow each other without a wait are held to
//          the time at which the former should have ended, so that late wake-ups do not add up.
// Guards:  every check finds what it checks to be good.
// Errors:  InternalError when the schedule is not what a verified one is; PeerLost at the deadline.
#pragma once

#include <chrono>

#include "base/link_model.h"
#include "schedule/costs.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace penstock::runtime {

struct EmulateOptions {
  // Real seconds per second of the costs; 0: as many as make the shortest action with a price on the rank's thread
  // last `shortest`, far above the 0.02 to 0.1 ms by which a thread wakes up late.
  double time_scale = 0;
  double shortest = 2e-3;
  int steps = 1;                               // begun by all ranks at once
  std::chrono::milliseconds deadline{60'000};  // longest wait for another rank
  bool serial = false;                         // as Job::serial
  const LinkModel* links = nullptr;            // prices messages and collectives by their bytes, instead of the costs
  // Clocks of the ranks' own that nobody lives through: the times are those of an ideal machine, at once. What then
  // differs from the replay of the simulator is a difference of rules.
  bool virtual_time = false;
};

// Runs the schedule on thread ranks and returns when all have ended. Times are in seconds of the costs, from the start
// of the first step; provenance is `emulated`. Ends are those of the transfer (sends), the arrival (receives), and the
// collective, as in predicted timelines.
schedule::Timeline EmulateSteps(const schedule::Schedule& schedule, const schedule::ActionCosts<double>& costs,
                                const EmulateOptions& options = {});

// Latest end minus earliest start of the events of one step.
double MakespanOf(const schedule::Timeline& timeline, int step = 0);

}  // namespace penstock::runtime
