#include "session/run/sweep.h"

#include <algorithm>
#include <ostream>
#include <set>

#include "base/error.h"
#include "schedule/builder.h"
#include "session/run/recorded_run.h"

namespace penstock::session {
namespace {

std::vector<std::string> Layouts(const SweepOptions& options, std::vector<std::vector<std::string>>& assignments) {
  std::vector<std::string> titles;
  std::vector<std::string> schedules = options.schedules;
  if (schedules.empty()) schedules = Registry<schedule::Builder>::Names();
  for (const int data : options.data) {
    for (const int pipeline : options.pipeline) {
      for (const std::string& name : schedules) {
        const schedule::Builder& builder = Registry<schedule::Builder>::Find(name);
        for (const int chunks : options.chunks) {
          for (const std::string& placement : builder.placements) {
            for (const std::string& recompute : options.recompute) {
              std::vector<std::string> splits = {"as_ordered"};
              if (options.split_variants && !builder.splits_backward) splits.push_back("always");
              for (const std::string& split : splits) {
                for (const bool serial :
                     options.serial_variants ? std::vector<bool>{false, true} : std::vector<bool>{false}) {
                  titles.push_back(fmt::format("data {} x pipeline {} x chunks {}, {} on {}, recompute {}, split {}{}",
                                               data, pipeline, chunks, name, placement, recompute, split,
                                               serial ? ", serial" : ""));
                  assignments.push_back(
                      {fmt::format("parallel.data={}", data), fmt::format("parallel.pipeline={}", pipeline),
                       fmt::format("parallel.chunks={}", chunks), fmt::format("parallel.schedule='{}'", name),
                       fmt::format("parallel.route='{}'", placement), fmt::format("parallel.recompute='{}'", recompute),
                       fmt::format("parallel.split_backward='{}'", split), fmt::format("runtime.serial={}", serial),
                       "numerics.reproducible=true"});
                }
              }
            }
          }
        }
      }
    }
  }
  return titles;
}

}  // namespace

SweepResult Sweep(const SettingsFactory& factory, const SweepOptions& options,
                  std::shared_ptr<const data::Dataset> dataset, std::ostream* progress) {
  SweepResult result;
  const std::vector<std::string> single = {"parallel.data=1",   "parallel.pipeline=1",
                                           "parallel.chunks=1", "parallel.schedule='gpipe'",
                                           "parallel.route=''", "numerics.reproducible=true"};
  const auto oracle_settings = factory(single);
  const auto oracle_run = Prepare(*oracle_settings, dataset);
  if (dataset == nullptr) dataset = oracle_run->text.train;  // read once
  const RecordedRun oracle = RecordOracle(*oracle_settings, *oracle_run, OracleKind::plain);
  const RecordedRun whole = RecordOracle(*oracle_settings, *oracle_run, OracleKind::whole);
  const RunComparison references = CompareRuns(oracle_run->job.spec, oracle, whole, /*bits_promised=*/false);
  if (references.verdict == checkpoint::Verdict::fault)
    result.oracle_fault = fmt::format("{}\n{}", references.first, references.tensors.ToString());
  for (const checkpoint::TensorDifference& d : references.tensors.differences)
    result.oracle_difference = std::max(result.oracle_difference, d.max_relative);

  std::vector<std::vector<std::string>> assignments;
  const std::vector<std::string> titles = Layouts(options, assignments);
  std::set<std::string> reasons;
  for (size_t i = 0; i < titles.size(); ++i) {
    std::unique_ptr<LoadedSettings> settings;
    std::unique_ptr<PreparedRun> run;
    try {
      settings = factory(assignments[i]);
      run = Prepare(*settings, dataset);
    } catch (const UnsoundSchedule& fault) {
      ++result.compared;
      result.differing.push_back(fmt::format("{}: {}", titles[i], fault.what()));
      continue;
    } catch (const UserError& refusal) {
      ++result.refused;
      reasons.insert(refusal.what());
      continue;
    }
    ++result.compared;
    RunComparison comparison;
    try {
      comparison = CompareRuns(run->job.spec, oracle, RecordRun(*settings, *run, titles[i], RecordRounding::no));
    } catch (const Error& failure) {
      result.differing.push_back(fmt::format("{}: {}", titles[i], failure.what()));
      continue;
    }
    const bool equal = comparison.verdict == checkpoint::Verdict::equal;
    if (!equal)
      result.differing.push_back(fmt::format("{}: {}\n{}", titles[i], comparison.first, comparison.tensors.ToString()));
    if (progress != nullptr)
      *progress << fmt::format("{} {}\n", equal ? "equal    " : "DIFFERENT", titles[i]) << std::flush;
  }
  result.refusals.assign(reasons.begin(), reasons.end());
  return result;
}

}  // namespace penstock::session
