// src/schedule/program.h
//
// Phases of step schedules in order. A phase repeats its cycle of schedules a number of times.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::schedule {

struct Repeat {
  int64_t cycles = 1;
};
struct Phase {
  std::vector<Schedule> cycle;
  Repeat repeat;
};
struct Program {
  std::vector<Phase> phases;
};

}  // namespace penstock::schedule
