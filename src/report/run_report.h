// src/report/run_report.h
//
// What a run did, in at most about 40 lines of text or as one JSON document: loss, speed, where the time went per rank,
// kind and stage, avoidable waits, peak memory, measured against predicted. Reads the files of report/run_files.h and
// says what is missing; nothing else is needed.
//
// Errors: UserError when the directory is no run (neither metrics nor a timeline), or a file of it is damaged.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "report/breakdown.h"
#include "report/gap.h"
#include "report/metrics.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace penstock::report {

struct LossSummary {
  StepMetrics first, last, lowest;
  int64_t skipped_updates = 0;
  int64_t tokens = 0;
  double seconds = 0;
  double tokens_per_second = 0;  // median over the steps, without the first
  double seconds_per_step = 0;   // likewise
};
// Needs at least one step.
LossSummary Summarise(const std::vector<StepMetrics>& steps);

// One character per cell from low to high; values that are not finite are shown as '!'.
std::string Sparkline(const std::vector<double>& values, size_t cells);

struct RunReport {
  std::string directory;
  std::vector<StepMetrics> steps;
  std::optional<LossSummary> loss;
  std::vector<int64_t> predicted_peak_bytes;  // [rank]; empty when the run does not say
  double predicted_step_seconds = 0;          // with what a step takes beside its actions; 0: the run does not say
  int64_t planned_from = 0;                   // steps before the last start, which may have had another layout
  std::optional<schedule::Schedule> schedule;
  std::optional<schedule::Timeline> measured, predicted;
  std::optional<Breakdown> measured_times, predicted_times;
  std::optional<Gap> gap;                // with both timelines
  std::vector<AvoidableWait> avoidable;  // of the measured timeline, longest first

  std::string ToText() const;
  std::string ToJson() const;
};

RunReport ReadRun(const std::string& directory, FileSystem& files = FileSystem::Real());

}  // namespace penstock::report
