// src/schedule/passes/split_backward.h
//
// always: every backward becomes its two halves, one after the other. never: the two halves of a (stage, micro-batch)
// become one backward at the place of the input half.
#pragma once

#include "schedule/lower.h"

namespace penstock::schedule {

void SplitBackward(Schedule& schedule, const LowerSpec& spec);

}  // namespace penstock::schedule
