// src/schedule/passes/recompute.h
//
// Full recomputation of the flagged stages: forward keeps its inputs only, and a recompute action stands right before
// the backward (or its input half), where the activations are needed. Chen et al., 2016 (sublinear memory).
#pragma once

#include "schedule/lower.h"

namespace penstock::schedule {

void Recompute(Schedule& schedule, const LowerSpec& spec);

}  // namespace penstock::schedule
