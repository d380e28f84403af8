// src/simulate/simulate.h
//
// A schedule with prices, transport, shared resources and memory, as a Timeline: what `penstock simulate` prints and
// what a run is held against. Deterministic.
// Errors: UserError for an empty schedule, and when actions are left that can never start (with what each waits for).
#pragma once

#include <string>
#include <vector>

#include "cost/memory.h"
#include "schedule/costs.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"
#include "simulate/list_engine.h"
#include "simulate/resources.h"

namespace penstock::simulate {

struct SimulationRequest {
  const schedule::Schedule& schedule;
  const schedule::ActionCosts<double>& costs;
  schedule::Transport transport = schedule::Transport::channelled;
  const ResourceModel* resources = nullptr;      // null: nothing is shared
  const cost::MemoryEstimate* memory = nullptr;  // with a trace; null: no memory events
  std::string title = "predicted";
};

struct Simulation {
  schedule::Timeline timeline;  // every action once
  double makespan = 0;          // seconds
  double bubble_fraction = 0;
  int64_t actions = 0;
  int64_t messages = 0;
  int64_t message_bytes = 0;
  int64_t extrapolated = 0;  // actions whose price is
};

Simulation Simulate(const SimulationRequest& request);

}  // namespace penstock::simulate
