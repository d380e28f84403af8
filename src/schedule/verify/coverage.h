// src/schedule/verify/coverage.h
//
// Is every action where the route puts it, and does every (stage, micro-batch) have its forward and both halves of its
// backward, once?
#pragma once

#include "schedule/verify/faults.h"

namespace penstock::schedule::verify {

void CheckRoute(const Schedule& schedule, Faults& faults);
void CheckCoverage(const Schedule& schedule, Faults& faults);

}  // namespace penstock::schedule::verify
