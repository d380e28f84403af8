// src/runtime/replicas.h
#pragma once

#include "comm/communicator.h"
#include "runtime/job.h"
#include "runtime/rank_state.h"
#include "schedule/schedule.h"

namespace penstock::runtime {

// All ranks that hold a unit must have the same bits of its parameters and optimizer state. Collective; a hash of each
// unit crosses. WorldError on all ranks, naming two of them and a parameter, when some differ (case D1: a run went on
// after loading with replicas that differed, and nothing showed it).
void RequireEqualReplicas(const Job& job, const schedule::Schedule& schedule, comm::Communicator& communicator,
                          RankState& state);

}  // namespace penstock::runtime
