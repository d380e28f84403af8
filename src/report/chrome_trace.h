// src/report/chrome_trace.h
//
// Timelines in the Chrome trace event format (JSON object form), which chrome://tracing and Perfetto open. One process
// per rank and timeline ("predicted rank 0", "measured rank 0"), one thread per stream (channels: per peer, queues: per
// group), an arrow from each send to its receive, and a counter of live bytes by class. Times in microseconds
// since the first start of each timeline: a measured run begins when it begins, a prediction at 0, and in one trace
// both must lie under each other.
// Source: "Trace Event Format", Google, the phases X, s, f, C and M.
#pragma once

#include <string>
#include <vector>

#include "schedule/timeline.h"

namespace penstock::report {

// Names of the lanes are the titles of the timelines.
std::string ChromeTrace(const std::vector<const schedule::Timeline*>& timelines);

}  // namespace penstock::report
