// src/report/analysis/step.h
//
// One step of a timeline, indexed for questions about who waited for whom.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/timeline.h"

namespace penstock::report::analysis {

struct StepEvents {
  int32_t step = 0;
  double start = 0, end = 0;                    // first start and last end over all ranks
  std::vector<std::vector<int32_t>> by_rank;    // [rank] indices in Timeline::events, by start
  std::vector<std::vector<int32_t>> computing;  // [rank] those of the compute stream, by the start of their work
  double length() const { return end - start; }
};

// Ascending by step.
std::vector<StepEvents> StepsOf(const schedule::Timeline& timeline);

// When the work of an event began, and how long it took.
inline double WorkStart(const schedule::Event& e) { return e.start + e.waited; }
inline double WorkSeconds(const schedule::Event& e) { return e.end - e.start - e.waited; }

// The step whose length is the median (the longer of the two in the middle), a real one, so that what is said of it
// adds up. Of several measured steps the first is left out: it warms caches and pools. Index in `steps`.
size_t TypicalStep(const std::vector<StepEvents>& steps, bool skip_first);

}  // namespace penstock::report::analysis
