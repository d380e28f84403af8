#include "session/run/compare_command.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "base/error.h"
#include "session/run/recorded_run.h"
#include "session/run/sweep.h"

namespace penstock::session {
namespace {

std::vector<std::string> Joined(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

int RunSweep(const CompareOptions& options, std::ostream& out, std::ostream& log) {
  const auto start = std::chrono::steady_clock::now();
  const SettingsFactory factory = [&](const std::vector<std::string>& layout) {
    return std::make_unique<LoadedSettings>(options.a, Joined(options.assignments, layout));
  };
  const SweepResult result = Sweep(factory, {}, nullptr, options.json ? nullptr : &log);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.json) {
    out << nlohmann::ordered_json{{"compared", result.compared},
                                  {"refused", result.refused},
                                  {"refusals", result.refusals},
                                  {"differing", result.differing},
                                  {"oracle_difference", result.oracle_difference},
                                  {"oracle_fault", result.oracle_fault},
                                  {"seconds", seconds},
                                  {"ok", result.ok()}}
               .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
  } else {
    for (const std::string& difference : result.differing) out << difference << "\n";
    out << fmt::format(
        "{} layouts compared with the plain loop: {} equal in every bit, {} different; {} impossible layouts refused; "
        "{:.0f} s\n",
        result.compared, result.compared - static_cast<int>(result.differing.size()), result.differing.size(),
        result.refused, seconds);
    out << fmt::format(
        "plain loop against one backward over the whole batch: {}; largest relative difference of a tensor {:.3g}\n",
        result.oracle_fault.empty() ? "equal to rounding" : "fault: " + result.oracle_fault, result.oracle_difference);
  }
  return result.ok() ? 0 : 1;
}

}  // namespace

int RunCompare(const CompareOptions& options, std::ostream& out, std::ostream& log) {
  if (options.sweep) {
    if (!options.b.empty() || !options.oracle.empty() || !options.assignments_b.empty())
      throw UserError("--sweep takes one configuration, no --oracle and no --set-b");
    return RunSweep(options, out, log);
  }
  if (options.b.empty() && options.oracle.empty() && options.assignments_b.empty())
    throw UserError("compare needs a second configuration, --set-b KEY=VALUE, --oracle plain|whole, or --sweep");
  if (!options.oracle.empty() && (!options.b.empty() || !options.assignments_b.empty()))
    throw UserError("--oracle compares the first configuration with a reference; leave the second one out");

  const LoadedSettings settings_a(options.a, options.assignments);
  const auto run_a = Prepare(settings_a);
  const RecordedRun a = RecordRun(settings_a, *run_a, options.a);
  RecordedRun b;
  bool bits_promised = settings_a.values.numerics.reproducible;
  std::string other;  // why the sides are not the same computation
  if (!options.oracle.empty()) {
    if (options.oracle != "plain" && options.oracle != "whole")
      throw UserError("--oracle is plain or whole, not '{}'", options.oracle);
    b = RecordOracle(settings_a, *run_a, options.oracle == "plain" ? OracleKind::plain : OracleKind::whole);
    bits_promised = bits_promised && options.oracle == "plain";
  } else {
    const std::string& path_b = options.b.empty() ? options.a : options.b;
    const LoadedSettings settings_b(path_b, Joined(options.assignments, options.assignments_b));
    other = FirstDifference(ComputationOf(settings_a), ComputationOf(settings_b));
    const std::string &weights_a = settings_a.values.checkpoint.weights,
                      &weights_b = settings_b.values.checkpoint.weights;
    if (other.empty() && weights_a != weights_b)
      other = fmt::format("checkpoint.weights is \"{}\" here and \"{}\" there", weights_a, weights_b);
    if (!other.empty()) bits_promised = false;
    bits_promised = bits_promised && settings_b.values.numerics.reproducible;
    if (settings_a.values.train.steps != settings_b.values.train.steps)
      throw UserError("the two sides run {} and {} steps (train.steps); a comparison needs the same number",
                      settings_a.values.train.steps, settings_b.values.train.steps);
    const auto run_b = Prepare(settings_b);
    if (ModelFingerprint(run_a->job.spec) != ModelFingerprint(run_b->job.spec))
      throw UserError("the two configurations have different models: {}", other);
    b = RecordRun(settings_b, *run_b, path_b);
  }
  const RunComparison comparison = CompareRuns(run_a->job.spec, a, b, bits_promised);
  const bool pass = comparison.verdict == checkpoint::Verdict::equal ||
                    (!bits_promised && comparison.verdict == checkpoint::Verdict::rounding);
  if (options.json) {
    out << nlohmann::ordered_json{{"verdict", checkpoint::VerdictName(comparison.verdict)},
                                  {"bits_promised", bits_promised},
                                  {"other_computation", other},
                                  {"pass", pass},
                                  {"first", comparison.first},
                                  {"tensors", comparison.tensors.tensors},
                                  {"differing_tensors", comparison.tensors.differences.size()},
                                  {"loss_difference", comparison.loss_difference},
                                  {"norm_difference", comparison.norm_difference},
                                  {"steps", a.losses.size()},
                                  {"applied", {a.applied, b.applied}}}
               .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
  } else {
    out << fmt::format("{} against {}: {} steps, {} tensors, {} differ: {}\n", a.title, b.title, a.losses.size(),
                       comparison.tensors.tensors, comparison.tensors.differences.size(),
                       checkpoint::VerdictName(comparison.verdict));
    if (!other.empty()) out << "not the same computation: " << other << "\n";
    for (const RecordedRun* run : {&std::as_const(a), &std::as_const(b)})
      if (const auto skipped = static_cast<int64_t>(run->losses.size()) - run->applied; skipped > 0)
        out << fmt::format("{}: {} of {} steps were not finite and changed nothing\n", run->title, skipped,
                           run->losses.size());
    if (!comparison.first.empty()) out << "first difference: " << comparison.first << "\n";
    if (!comparison.tensors.differences.empty()) out << comparison.tensors.ToString() << "\n";
    if (comparison.verdict != checkpoint::Verdict::equal)
      out << fmt::format("largest relative difference of losses {:.3g}, of norms {:.3g}\n", comparison.loss_difference,
                         comparison.norm_difference);
  }
  return pass ? 0 : 1;
}

}  // namespace penstock::session
