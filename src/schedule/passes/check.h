// src/schedule/passes/check.h
//
// The verdict before the update: task:norm of every held unit once its gradient is final, one
// collective:gather_statistics over all ranks, check:finite_clip, which sets predicate 0 on every rank alike.
#pragma once

#include "schedule/lower.h"

namespace penstock::schedule {

inline constexpr int kFinitePredicate = 0;

void InsertChecks(Schedule& schedule, const LowerSpec& spec);

}  // namespace penstock::schedule
