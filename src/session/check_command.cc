#include "session/check_command.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "schedule/complete.h"
#include "schedule/text.h"
#include "session/plan.h"

namespace penstock::session {
namespace {

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

nlohmann::ordered_json MemoryJson(const cost::MemoryEstimate& memory) {
  nlohmann::ordered_json json = {{"machine_bytes", memory.machine()}, {"process_bytes", memory.process}};
  for (const cost::RankMemory& r : memory.ranks) {
    nlohmann::ordered_json rank = {{"peak_bytes", r.peak()},           {"step_bytes", r.step},
                                   {"persistent_bytes", r.persistent}, {"load_copy_bytes", r.load_copy},
                                   {"snapshot_bytes", r.snapshot},     {"final_state_bytes", r.final_state},
                                   {"cached_bytes", r.cached}};
    for (int c = 0; c < kBufferClassCount; ++c) rank["at_peak"][std::string(kBufferClassNames[c])] = r.at_peak[c];
    rank["at_peak"]["workspace"] = r.workspace;
    json["ranks"].push_back(std::move(rank));
  }
  return json;
}

int Print(const schedule::Schedule& schedule, const schedule::VerifyReport& verdict, const std::string& explanation,
          const cost::MemoryEstimate* memory, const std::string& refused, bool json, std::ostream& out) {
  const bool runs = verdict.transports[static_cast<size_t>(schedule::Transport::channelled)].completes;
  const bool ok = verdict.ok() && runs && refused.empty();
  if (json) {
    nlohmann::ordered_json document = {{"ok", ok},
                                       {"ranks", schedule.num_ranks()},
                                       {"stages", schedule.num_stages()},
                                       {"micro_batches", schedule.num_micro_batches()},
                                       {"actions", schedule.num_actions()}};
    document["faults"] = nlohmann::ordered_json::array();
    for (const schedule::Fault& fault : verdict.faults)
      document["faults"].push_back({{"code", schedule::Name(fault.code)},
                                    {"rank", fault.where.rank},
                                    {"index", fault.where.index},
                                    {"message", fault.message}});
    document["refused"] = refused;
    for (int t = 0; t < schedule::kTransportCount; ++t)
      document["transports"][std::string(schedule::kTransportNames[t])] = {
          {"completes", verdict.transports[t].completes}, {"cycle", verdict.transports[t].cycle}};
    if (memory != nullptr) document["memory"] = MemoryJson(*memory);
    out << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    out << explanation << (memory != nullptr ? DescribeMemory(*memory) : "") << verdict.ToString() << "\n";
    if (!refused.empty()) out << "refused: " << refused << "\n";
  }
  return ok ? 0 : 2;
}

// Why `train` would not run a plan whose schedule has no fault; empty when it would.
std::string WhyRefused(const Plan& plan, const Settings& settings) {
  if (!plan.verdict.ok()) return "";
  try {
    RequireSound(plan);
    RequireFits(plan, settings);
  } catch (const UserError& refusal) {
    return refusal.what();
  }
  return "";
}

}  // namespace

int RunCheck(const CheckOptions& options, std::ostream& out) {
  if (EndsWith(options.target, ".toml")) {
    const LoadedSettings settings(options.target, options.assignments);
    const Plan plan = MakePlan(settings);
    return Print(plan.schedule, plan.verdict, plan.explanation, &plan.memory, WhyRefused(plan, settings.values),
                 options.json, out);
  }
  if (!options.assignments.empty())
    throw UserError("--set changes a configuration; '{}' is taken for a schedule file (configurations end in .toml)",
                    options.target);
  const schedule::Schedule schedule = schedule::ParseSchedule(ReadFile(options.target), options.target);
  return Print(schedule, schedule::VerifyWritten(schedule), "", nullptr, "", options.json, out);
}

int RunConfig(const ConfigOptions& options, std::ostream& out) {
  if (options.config.empty()) {
    if (!options.assignments.empty()) throw UserError("--set changes a configuration; name one");
    LoadedSettings settings;
    out << (options.json
                ? settings.config.DescribeJson().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
            : options.markdown ? settings.config.MarkdownDocs()
                               : settings.config.ResolvedToml());
    return 0;
  }
  const LoadedSettings settings(options.config, options.assignments);
  out << (options.json ? settings.config.Json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                       : settings.config.ResolvedToml());
  return 0;
}

}  // namespace penstock::session
