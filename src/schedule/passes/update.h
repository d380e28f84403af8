// src/schedule/passes/update.h
//
// The optimizer step of every held unit, guarded by predicate 0 when a check sets it.
#pragma once

#include "schedule/lower.h"

namespace penstock::schedule {

void InsertUpdates(Schedule& schedule, const LowerSpec& spec);

}  // namespace penstock::schedule
