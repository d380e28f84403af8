// src/simulate/contended_engine.h
//
// Replay in time order, with resources that actions share (simulate/resources.h). Without any demand above capacity it
// gives the times of TimesInOrder (simulate/list_engine.h). A send takes its resources for its duration, not for the
// latency after it; a collective runs once, for all its members, with what all of them use.
// Deterministic: equal times are taken in the order of ranks and lists. Every start and end changes the speed of those
// that share with it: the cost grows with how many run at once on one resource.
// Errors as TimesInOrder.
#pragma once

#include "schedule/costs.h"
#include "schedule/schedule.h"
#include "simulate/list_engine.h"
#include "simulate/resources.h"

namespace penstock::simulate {

Times<double> TimesWithContention(const schedule::Schedule& schedule, const schedule::ActionCosts<double>& costs,
                                  const ResourceModel& resources,
                                  schedule::Transport transport = schedule::Transport::channelled);

}  // namespace penstock::simulate
