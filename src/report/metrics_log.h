// src/report/metrics_log.h
//
// The metrics of a run in all the forms that were asked for: metrics.jsonl always, metrics.csv and TensorBoard events
// by choice. A resumed run keeps in each what is of steps before its first one. A form that is asked for only then
// begins with what metrics.jsonl has; one that is no longer asked for is left as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "report/csv.h"
#include "report/metrics.h"
#include "report/tensorboard.h"

namespace penstock::report {

struct MetricsForms {
  bool csv = false;
  bool tensorboard = false;
};

// Used by one thread.
class MetricsLog {
 public:
  // `directory` is that of the run (report/run_files.h).
  MetricsLog(const std::string& directory, int64_t first_step, const MetricsForms& forms,
             FileSystem& files = FileSystem::Real());
  void Write(const StepMetrics& metrics);

 private:
  std::optional<MetricsWriter> lines_;
  std::optional<CsvWriter> table_;
  std::optional<TensorBoardWriter> events_;
};

}  // namespace penstock::report
