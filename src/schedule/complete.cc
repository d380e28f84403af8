#include "schedule/complete.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/passes/make_action.h"
#include "schedule/passes/recompute.h"

namespace penstock::schedule {
namespace {

void Require(const char* what, int64_t in_file, int64_t in_job) {
  if (in_file != in_job)
    throw UserError("the schedule file has {} {}, the job has {}; change one of them", in_file, what, in_job);
}

void RequireNoEffect(const char* key, bool set) {
  if (set) throw UserError("{} has no effect on a schedule file, which says that itself; leave the key out", key);
}

// The parameters each stage uses must be the model's: tied ones are units of their own.
void RequireSameUses(const Schedule& written, const LowerSpec& spec) {
  const size_t stages = written.num_stages();
  for (size_t u = 0; u < written.holders.units.size(); ++u) {
    std::vector<uint16_t> uses, expected;
    for (const ParameterUse& use : written.holders.units[u].uses) uses.push_back(use.stage);
    if (u >= stages) {
      expected = spec.shared_parameters[u - stages];
    } else if (spec.stage_has_parameters.empty() || spec.stage_has_parameters[u]) {
      expected = {static_cast<uint16_t>(u)};
    }
    if (uses != expected)
      throw UserError(
          "parameter unit {} of the schedule file is used by {} stage(s) where the model has {}, or by others; see "
          "'shared' in "
          "docs/schedule_format.md (model.tied shares the embedding of the first and last stage)",
          u, uses.size(), expected.size());
  }
}

// What a file with compute only cannot say, because the passes would not follow it.
void RequireOnePipeline(const Schedule& written) {
  Require("stages, and options for as many", static_cast<int64_t>(written.stage_options.size()), written.num_stages());
  if (!written.graph.is_chain())
    throw UserError(
        "the stages of the schedule file are no chain; with compute only they must be (leave the 'edge' lines out)");
  if (written.route.placements.size() != 1 || !written.route.overrides.empty())
    throw UserError(
        "the schedule file has several placements, or overrides; with compute only it describes one pipeline with one "
        "'placement'");
  for (const auto& list : written.ranks)
    for (const Action& action : list)
      if (action != MakeCompute(action.key.kind, action.key.unit.stage, action.key.micro_batch))
        throw UserError(
            "'{}' of the schedule file says more than its stage and micro-batch; with compute only the passes would "
            "not "
            "follow it: leave it out, or write the whole step",
            ToString(action));
}

bool Has(const Schedule& schedule, Kind kind) {
  for (const auto& list : schedule.ranks)
    for (const Action& action : list)
      if (action.key.kind == kind) return true;
  return false;
}

std::vector<bool> RecomputeOf(const Schedule& written) {
  std::vector<bool> recompute;
  for (const StageOptions& options : written.stage_options) recompute.push_back(options.recompute);
  return recompute;
}
bool AnyRecompute(const Schedule& written) {
  const std::vector<bool> recompute = RecomputeOf(written);
  return std::count(recompute.begin(), recompute.end(), true) > 0;
}

}  // namespace

Schedule CompleteSchedule(const Schedule& written, const LowerSpec& spec) {
  Require("stages", written.num_stages(), int64_t{spec.pipeline} * spec.chunks);
  if (!written.is_compute_only()) {
    Require("ranks", written.num_ranks(), int64_t{spec.data} * spec.pipeline);
    Require("micro-batches", written.num_micro_batches(), spec.micro_batches);
    Require("parameter units", static_cast<int64_t>(written.holders.units.size()),
            static_cast<int64_t>(spec.pipeline) * spec.chunks + static_cast<int64_t>(spec.shared_parameters.size()));
    RequireSameUses(written, spec);
    RequireNoEffect("parallel.recompute", std::count(spec.recompute.begin(), spec.recompute.end(), true) > 0);
    RequireNoEffect("parallel.split_backward", spec.split_backward != LowerSpec::Split::as_ordered);
    RequireNoEffect("parallel.route", !spec.placement.empty());
    return written;
  }
  RequireOnePipeline(written);
  if (written.holders.units.size() > static_cast<size_t>(written.num_stages())) {
    Require("shared parameters", static_cast<int64_t>(written.holders.units.size()) - written.num_stages(),
            static_cast<int64_t>(spec.shared_parameters.size()));
    RequireSameUses(written, spec);
  }
  RequireNoEffect("parallel.route", !spec.placement.empty());
  Require("ranks (a file with compute only describes one pipeline)", written.num_ranks(), spec.pipeline);
  Require("micro-batches per replica", written.num_micro_batches(), spec.micro_batches / spec.data);
  Require("micro-batches left over when the batch is spread over the replicas", 0, spec.micro_batches % spec.data);

  Builder builder;
  builder.name = written.name;
  builder.splits_backward = Has(written, Kind::backward_weight);
  builder.contract = written.contract;
  builder.placements = {spec.placement};
  builder.build = [&written](const PipelineShape&) {
    ComputeOrder order;
    order.placement = written.route.placements.at(0);
    order.positions.resize(written.ranks.size());
    for (size_t r = 0; r < written.ranks.size(); ++r) {
      for (const Action& action : written.ranks[r]) {
        const int stage = action.key.unit.stage, m = action.key.micro_batch;
        ComputeList& list = order.positions[r];
        if (action.key.kind == Kind::forward) list.Forward(stage, m);
        if (action.key.kind == Kind::recompute) list.Recompute(stage, m);
        if (action.key.kind == Kind::backward) list.Backward(stage, m);
        if (action.key.kind == Kind::backward_input) list.BackwardInput(stage, m);
        if (action.key.kind == Kind::backward_weight) list.BackwardWeight(stage, m);
      }
    }
    return order;
  };
  LowerSpec complete = spec;
  if (AnyRecompute(written)) {
    RequireNoEffect("parallel.recompute", std::count(spec.recompute.begin(), spec.recompute.end(), true) > 0);
    complete.recompute = RecomputeOf(written);
  }
  return Lower(builder, complete);
}

VerifyReport VerifyWritten(const Schedule& written) {
  const bool sound = written.stage_options.size() == static_cast<size_t>(written.num_stages());
  if (!sound || !written.is_compute_only()) return Verify(written);
  // The order of compute on its own first: the passes take it for granted.
  Schedule whole = written;
  LowerSpec spec;
  if (AnyRecompute(written)) spec.recompute = RecomputeOf(written);
  Recompute(whole, spec);
  VerifyReport report = Verify(whole, {.expect_messages = false, .expect_updates = false});
  if (!report.ok()) return report;
  RunPasses(whole, spec);
  return Verify(whole);
}

}  // namespace penstock::schedule
