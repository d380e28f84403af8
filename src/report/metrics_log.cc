#include "report/metrics_log.h"

#include "report/run_files.h"

namespace penstock::report {

MetricsLog::MetricsLog(const std::string& directory, int64_t first_step, const MetricsForms& forms, FileSystem& files) {
  const auto path = [&](std::string_view name) { return directory + "/" + std::string(name); };
  std::vector<StepMetrics> before;
  for (StepMetrics& m : ReadMetrics(path(kMetricsFile), files))
    if (m.step < first_step) before.push_back(std::move(m));
  lines_.emplace(path(kMetricsFile), first_step, files);
  if (forms.csv) table_.emplace(path(kCsvFile), before, files);
  if (forms.tensorboard) events_.emplace(path(kTensorBoardFolder), first_step, before, files);
}

void MetricsLog::Write(const StepMetrics& metrics) {
  lines_->Write(metrics);
  if (table_) table_->Write(metrics);
  if (events_) events_->Write(metrics);
}

}  // namespace penstock::report
