// src/schedule/passes/communication.h
//
// Messages between ranks (pipeline_schedules.md section 6). One walk over all ranks takes, round after round in rank
// order, the next action of each rank whose inputs are produced; a send follows the action that made its tensor, and
// the receive goes to the tail that the consumer's list has at that moment. The walk is thus one total order in which
// a send and its receive are neighbours, and every list is a part of it: no transport can deadlock, not even the
// blocking one. Stages on one rank hand over by reference.
// Errors: UserError naming the blocked actions when the order of compute cannot proceed.
#pragma once

#include "schedule/lower.h"

namespace penstock::schedule {

void InsertCommunication(Schedule& schedule, const LowerSpec& spec);

}  // namespace penstock::schedule
