#include "session/html_report.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "report/chrome_trace.h"
#include "report/html.h"
#include "report/run_files.h"
#include "report/run_report.h"

namespace penstock::session {

using Json = nlohmann::ordered_json;

namespace {

std::string InDirectory(const std::string& directory, std::string_view name) {
  return directory + "/" + std::string(name);
}

}  // namespace

std::string PlanJson(const Prediction& prediction, const Plan& plan, int64_t first_step) {
  Json j;
  for (const cost::RankMemory& rank : plan.memory.ranks) j["predicted_peak_bytes"].push_back(rank.peak());
  j["first_step"] = first_step;
  j["memory_limit_bytes"] = prediction.memory_limits;
  j["shared_cores"] = prediction.ranks_take_turns;
  j["shared_memory"] = prediction.machine_bytes.size() == 1;
  j["predicted_step_seconds"] = prediction.step_seconds;
  j["uncalibrated"] = !prediction.calibrated;
  j["facts"] = Json::array();
  for (const auto& [key, value] : prediction.facts) j["facts"].push_back({key, value});
  j["warnings"] = prediction.warnings;
  return j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void WriteReportFiles(const std::string& directory, const std::string& title) {
  const report::RunReport run = report::ReadRun(directory);
  report::HtmlInput input;
  input.title = title;
  input.predicted = run.predicted ? &*run.predicted : nullptr;
  input.measured = run.measured ? &*run.measured : nullptr;
  input.schedule = run.schedule ? &*run.schedule : nullptr;
  input.predicted_peak_bytes = run.predicted_peak_bytes;
  input.predicted_step_seconds = run.predicted_step_seconds;
  input.metrics = run.steps;
  const std::string plan_file = InDirectory(directory, report::kPlanFile);
  if (FileSystem::Real().Exists(plan_file)) {
    const auto plan = nlohmann::json::parse(ReadFile(plan_file), nullptr, /*allow_exceptions=*/false);
    if (plan.is_object()) {
      // What an older or foreign file lacks is left out of the page.
      const auto list = [&](const char* key) {
        return plan.contains(key) && plan[key].is_array() ? plan[key] : nlohmann::json::array();
      };
      for (const auto& limit : list("memory_limit_bytes"))
        if (limit.is_number_integer()) input.memory_limits.push_back(limit.get<int64_t>());
      for (const auto& fact : list("facts"))
        if (fact.is_array() && fact.size() == 2 && fact[0].is_string() && fact[1].is_string())
          input.facts.emplace_back(fact[0].get<std::string>(), fact[1].get<std::string>());
      for (const auto& warning : list("warnings"))
        if (warning.is_string()) input.warnings.push_back(warning.get<std::string>());
      const auto flag = [&](const char* key) {
        const auto value = plan.find(key);
        return value != plan.end() && value->is_boolean() && value->get<bool>();
      };
      input.uncalibrated = flag("uncalibrated");
      input.shared_memory = flag("shared_memory");
      input.shared_cores = flag("shared_cores");
    }
  }
  std::vector<const schedule::Timeline*> timelines;
  for (const schedule::Timeline* t : {input.predicted, input.measured})
    if (t != nullptr) timelines.push_back(t);
  if (!timelines.empty())
    WriteFileAtomically(InDirectory(directory, report::kTraceFile), report::ChromeTrace(timelines), true);
  WriteFileAtomically(InDirectory(directory, report::kHtmlFile), report::HtmlReport(input), true);
}

}  // namespace penstock::session
