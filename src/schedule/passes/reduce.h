// src/schedule/passes/reduce.h
//
// Gradient reductions over holders (numerics.md R4, R5). A use that several ranks run gets a collective:reduce, a
// shared unit a collective:sum_uses after all its uses are reduced (on one rank too: the sum over the uses is still to
// be made). Both are placed by one walk over all ranks, which puts a collective at the tails of all ranks of its group
// at one moment, soon after the last contribution of the slowest of them: every list is a part of one total order,
// so groups that overlap cannot wait for each other in a ring. A gradient that a backward has just produced for a
// neighbour is sent first.
// Errors: UserError when the lists that come in deadlock already.
#pragma once

#include "schedule/lower.h"

namespace penstock::schedule {

void ReduceGradients(Schedule& schedule, const LowerSpec& spec);

}  // namespace penstock::schedule
