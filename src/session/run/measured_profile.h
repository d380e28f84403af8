// src/session/run/measured_profile.h
//
// A profile (schedule/profile.h) from what a training run recorded: medians over its recorded steps, micro-batches and
// ranks. Ragged micro-batches count under their own sizes.
#pragma once

#include <vector>

#include "runtime/train_loop.h"
#include "schedule/profile.h"
#include "session/plan.h"

namespace penstock::session {

// `sizes`: [recorded step][micro-batch] as bound. `step_seconds`: of the recorded steps, whole.
schedule::Profile MeasuredProfile(const runtime::Job& job, const Plan& plan, const runtime::TrainOutcome& outcome,
                                  const std::vector<double>& step_seconds);

}  // namespace penstock::session
