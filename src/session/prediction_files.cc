#include "session/prediction_files.h"

#include "base/file.h"
#include "report/run_files.h"
#include "report/svg.h"
#include "report/timeline_io.h"
#include "schedule/text.h"
#include "session/html_report.h"

namespace penstock::session {

void WritePrediction(const std::string& directory, const LoadedSettings& settings, const Plan& plan,
                     const Prediction& prediction) {
  FileSystem::Real().CreateFolders(directory);
  const auto file = [&](std::string_view name) { return directory + "/" + std::string(name); };
  const schedule::Timeline& timeline = prediction.simulation.timeline;
  WriteFileAtomically(file("config.toml"), settings.config.ResolvedToml());
  WriteFileAtomically(file(report::kScheduleFile), schedule::PrintSchedule(plan.schedule));
  WriteFileAtomically(file(report::kPlanFile), PlanJson(prediction, plan, 0));
  report::SaveTimeline(file(report::kPredictedTimelineFile), timeline);
  WriteFileAtomically(file(report::kDrawingFile), report::DrawSvg(timeline, {}));
  WriteReportFiles(directory, settings.path);
}

}  // namespace penstock::session
