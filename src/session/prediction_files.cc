#include "session/prediction_files.h"

#include "base/error.h"
#include "base/file.h"
#include "report/run_files.h"
#include "report/svg.h"
#include "report/timeline_io.h"
#include "schedule/text.h"
#include "session/html_report.h"

namespace penstock::session {

void RequireNewDirectory(const std::string& directory) {
  if (!directory.empty() && FileSystem::Real().Exists(directory))
    throw UserError("--out: '{}' exists already and is not overwritten; choose another path or remove it", directory);
}

void WritePrediction(const std::string& directory, const LoadedSettings& settings, const Plan& plan,
                     const Prediction& prediction, const std::string& title, const schedule::Timeline* measured) {
  FileSystem::Real().CreateFolders(directory);
  const auto file = [&](std::string_view name) { return directory + "/" + std::string(name); };
  const schedule::Timeline& timeline = prediction.simulation.timeline;
  WriteFileAtomically(file("config.toml"), settings.config.ResolvedToml());
  WriteFileAtomically(file(report::kScheduleFile), schedule::PrintSchedule(plan.schedule));
  WriteFileAtomically(file(report::kPlanFile), PlanJson(prediction, plan, 0));
  report::SaveTimeline(file(report::kPredictedTimelineFile), timeline);
  WriteFileAtomically(file(report::kDrawingFile), report::DrawSvg(timeline, {}));
  if (measured != nullptr) report::SaveTimeline(file(report::kMeasuredTimelineFile), *measured);
  WriteReportFiles(directory, title);
}

}  // namespace penstock::session
