// src/session/run/measured_profile.h
//
// A profile (schedule/profile.h) from what a training run recorded: means over its recorded steps, micro-batches and
// ranks, without what took more than three times the median. Ragged micro-batches count under their own sizes.
#pragma once

#include <vector>

#include "runtime/train_loop.h"
#include "schedule/profile.h"
#include "session/plan.h"

namespace penstock::session {

// `step_seconds`: of the recorded steps, whole. `threads`: that one operation uses.
schedule::Profile MeasuredProfile(const runtime::Job& job, const Plan& plan, const runtime::TrainOutcome& outcome,
                                  const std::vector<double>& step_seconds, int threads);

}  // namespace penstock::session
