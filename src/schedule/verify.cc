#include "schedule/verify.h"

#include <fmt/format.h>

#include "schedule/verify/coverage.h"
#include "schedule/verify/gradients.h"
#include "schedule/verify/lifetimes.h"
#include "schedule/verify/meetings.h"
#include "schedule/verify/replay.h"
#include "schedule/verify/structure.h"

namespace penstock::schedule {
namespace {

constexpr std::array<std::string_view, kFaultCodeCount> kFaultCodeNames = {"malformed",         "route",
                                                                           "missing compute",   "duplicate compute",
                                                                           "unmatched message", "reordered messages",
                                                                           "collective order",  "use before allocation",
                                                                           "use after free",    "double free",
                                                                           "double allocation", "leak",
                                                                           "reduced too early", "updated too early",
                                                                           "missing update",    "deadlock"};
static_assert(static_cast<int>(FaultCode::deadlock) == kFaultCodeCount - 1);

}  // namespace

std::string_view Name(FaultCode code) { return kFaultCodeNames[static_cast<size_t>(code)]; }

VerifyReport Verify(const Schedule& schedule, const VerifyOptions& options) {
  VerifyReport report;
  report.actions = schedule.num_actions();
  verify::Faults faults(report, options.max_faults);
  if (!verify::CheckStructure(schedule, faults)) {
    for (TransportVerdict& verdict : report.transports) verdict = {false, "not replayed: the schedule is malformed"};
    return report;
  }
  const verify::Numbering numbering(schedule);
  verify::CheckRoute(schedule, faults);
  if (options.expect_coverage) verify::CheckCoverage(schedule, faults);
  const verify::Meetings meetings = verify::FindMeetings(schedule, numbering, faults);
  if (options.expect_coverage) verify::CheckGradients(schedule, options, faults);
  const verify::Hazards hazards = verify::CheckLifetimes(schedule, numbering, options, faults, report.peaks);
  const verify::Edges edges = verify::FindEdges(schedule, numbering, options);
  for (int t = 0; t < kTransportCount; ++t) {
    const auto transport = static_cast<Transport>(t);
    report.transports[t] = verify::Replay(schedule, transport, numbering, meetings, hazards, edges);
    if (!report.transports[t].completes && schedule.contract.deadlock_free[t])
      faults.Add(FaultCode::deadlock, {-1, -1}, "deadlock under {} transport: {}", Name(transport),
                 report.transports[t].cycle);
  }
  return report;
}

std::string VerifyReport::ToString() const {
  const int64_t num_faults = static_cast<int64_t>(faults.size()) + faults_left_out;
  std::string text = ok() ? fmt::format("verified: {} actions, no fault\n", actions)
                          : fmt::format("{} fault{} in {} actions\n", num_faults, num_faults == 1 ? "" : "s", actions);
  // Deadlocks stand with their transports below.
  for (const Fault& fault : faults)
    if (fault.code != FaultCode::deadlock) text += fmt::format("  {}: {}\n", Name(fault.code), fault.message);
  if (faults_left_out > 0) text += fmt::format("  ... and {} more\n", faults_left_out);
  std::vector<std::pair<std::string, std::string>> outcomes;  // what happens, under which transports
  for (int t = 0; t < kTransportCount; ++t) {
    const std::string what = transports[t].completes ? "completes" : "does not complete: " + transports[t].cycle;
    const std::string name(Name(static_cast<Transport>(t)));
    if (outcomes.empty() || outcomes.back().first != what) {
      outcomes.emplace_back(what, name);
    } else {
      outcomes.back().second += ", " + name;
    }
  }
  for (const auto& [what, names] : outcomes) text += fmt::format("  {} transport: {}\n", names, what);
  return text;
}

}  // namespace penstock::schedule
