// src/schedule/complete.h
//
// A hand-written schedule becomes one that can run: a file with compute only describes one pipeline and goes through
// the same passes as a builder's; a file with messages and updates is taken as it is, after its shape was compared
// with the job's. Recomputation is the file's to say: its `recompute` stages, and where R actions stand if it has some.
#pragma once

#include "schedule/lower.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// UserError when ranks, stages, micro-batches or parameter units do not fit the spec.
Schedule CompleteSchedule(const Schedule& written, const LowerSpec& spec);

// Faults of a written schedule on its own: of the whole step, which the passes derive where there is compute only.
VerifyReport VerifyWritten(const Schedule& written);

}  // namespace penstock::schedule
