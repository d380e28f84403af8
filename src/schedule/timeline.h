// src/schedule/timeline.h
//
// What happened, predicted or measured. Simulator and executor both return one; reports, traces and comparisons are
// functions of timelines and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/buffer_class.h"
#include "schedule/action.h"

namespace penstock::schedule {

// How a duration came about; marked in every output.
enum class Provenance : uint8_t { measured, predicted, emulated, extrapolated };

struct Event {
  Action action;
  int32_t rank = 0;
  int32_t index = 0;  // in the rank's list
  int32_t step = 0;
  double start = 0;  // seconds since the timeline's origin
  double end = 0;
  // Of [start, end): seconds the rank's thread was blocked until the hazards were over (waiting for a message, a
  // collective). The work itself took end - start - waited.
  double waited = 0;
  int64_t bytes = 0;  // sent, received or reduced
  Provenance provenance = Provenance::measured;
};

struct MemoryEvent {
  int32_t rank = 0;
  double time = 0;
  BufferClass buffer_class = BufferClass::activation;
  Tier tier = Tier::device;
  int64_t live_bytes = 0;  // of this class on this rank, after the event
};

struct Timeline {
  std::string title;
  int32_t num_ranks = 0;
  std::vector<Event> events;  // by rank, then by start
  std::vector<MemoryEvent> memory;
};

}  // namespace penstock::schedule
