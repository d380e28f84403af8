// src/report/run_files.h
//
// What lies in the directory of a run, by name. The session writes them, `penstock report` reads them; any but the
// first may be missing.
#pragma once

#include <string_view>

namespace penstock::report {

inline constexpr std::string_view kMetricsFile = "metrics.jsonl";      // report/metrics.h
inline constexpr std::string_view kCsvFile = "metrics.csv";            // report/csv.h
inline constexpr std::string_view kTensorBoardFolder = "tensorboard";  // report/tensorboard.h
inline constexpr std::string_view kScheduleFile = "schedule.txt";      // schedule/text.h
inline constexpr std::string_view kPlanFile = "plan.json";             // {"predicted_peak_bytes": [], "first_step": 0}
inline constexpr std::string_view kMeasuredTimelineFile = "timeline_measured.jsonl";    // report/timeline_io.h
inline constexpr std::string_view kPredictedTimelineFile = "timeline_predicted.jsonl";  // report/timeline_io.h
inline constexpr std::string_view kHtmlFile = "report.html";                            // report/html.h
inline constexpr std::string_view kProfileFile = "profile.json";                        // schedule/profile.h
inline constexpr std::string_view kTraceFile = "trace.json";                            // report/chrome_trace.h
inline constexpr std::string_view kDrawingFile = "timeline.svg";                        // report/svg.h

}  // namespace penstock::report
