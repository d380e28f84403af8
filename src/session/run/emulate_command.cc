#include "session/run/emulate_command.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/units.h"
#include "report/gap.h"
#include "runtime/emulate.h"
#include "runtime/environment.h"
#include "session/prediction.h"
#include "session/prediction_files.h"

namespace penstock::session {
namespace {
constexpr int64_t kMaxRanks = 256;  // threads that wake up about when they should
constexpr double kLeastSeconds = 1e-3;
}  // namespace

int RunEmulate(const EmulateCommandOptions& options, std::ostream& out) {
  LoadedSettings settings(options.config, options.assignments);
  if (!(options.seconds >= kLeastSeconds) || options.seconds > 3600)
    throw UserError(
        "--seconds {}: the emulated step should last at least {} and at most 3600 seconds; what is shorter "
        "than waking up says nothing",
        options.seconds, kLeastSeconds);
  RequireNewDirectory(options.out);
  // A rank that stands for several, and cores that ranks share, are the simulator's alone.
  settings.values.cluster.fold = false;
  settings.values.cluster.contention = false;
  // Before the plan is made: one of many ranks takes long.
  if (const int64_t ranks = settings.values.parallel.data * settings.values.parallel.pipeline; ranks > kMaxRanks)
    throw UserError(
        "{} data x {} pipeline are {} ranks; up to {} are emulated on one machine. Fewer replicas "
        "(parallel.data) have the same step",
        settings.values.parallel.data, settings.values.parallel.pipeline, ranks, kMaxRanks);
  const Simulated simulated = SimulatePlan(settings);
  const Plan& plan = *simulated.plan;
  if (!plan.verdict.transports[static_cast<size_t>(schedule::Transport::channelled)].completes)
    throw UserError("the schedule '{}' is not sound, so it is not emulated:\n{}", plan.schedule.name,
                    plan.verdict.ToString());
  runtime::PrepareProcess(/*reproducible=*/false);
  const simulate::Simulation& predicted = simulated.prediction.simulation;
  const double scale = options.seconds / predicted.makespan;
  const schedule::Timeline emulated = runtime::EmulateSteps(
      plan.schedule, *simulated.prediction.costs, {.time_scale = scale, .steps = 1, .deadline = std::chrono::hours(2)});
  const report::Gap gap = report::CompareTimelines(predicted.timeline, emulated, plan.schedule.graph);
  const double ratio = runtime::MakespanOf(emulated) / predicted.makespan;
  if (!options.out.empty())
    WritePrediction(options.out, settings, plan, simulated.prediction, options.config + " (emulated)", &emulated);
  if (options.json) {
    out << nlohmann::ordered_json{{"ranks", plan.schedule.num_ranks()},
                                  {"actions", predicted.actions},
                                  {"simulated_seconds", predicted.makespan},
                                  {"emulated_seconds", runtime::MakespanOf(emulated)},
                                  {"ratio", ratio},
                                  {"time_scale", scale},
                                  {"gap", nlohmann::ordered_json::parse(gap.ToJson())}}
               .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
    return 0;
  }
  out << fmt::format("emulated   {} ranks, {} actions; a second of the plan took {:.3g} s\n", plan.schedule.num_ranks(),
                     predicted.actions, scale);
  out << fmt::format("step       simulated {}, emulated {}: {:.3f} of it\n", FormatSeconds(predicted.makespan),
                     FormatSeconds(runtime::MakespanOf(emulated)), ratio);
  out << gap.WhyText();
  if (!options.out.empty()) out << fmt::format("report     {}/report.html\n", options.out);
  return 0;
}

}  // namespace penstock::session
