// src/simulate/stuck.h
//
// What both engines share: the words when nothing moves and actions are left, and the message that an action without
// one would send.
#pragma once

#include <vector>

#include "schedule/schedule.h"
#include "simulate/action_graph.h"

namespace penstock::simulate {

// UserError with the wait graph: the first blocked action of each rank and what it waits for. `done`: [node] it was
// reached.
[[noreturn]] void ThrowStuck(const schedule::Schedule& schedule, const ActionGraph& graph,
                             const std::vector<bool>& done);

// The message that crosses when `action` has produced something for a stage on another rank: itself when it is a send.
schedule::Action MessageOf(const schedule::Action& action);

}  // namespace penstock::simulate
