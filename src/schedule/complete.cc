#include "schedule/complete.h"

#include <algorithm>

#include "base/error.h"

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

}  // namespace

Schedule CompleteSchedule(const Schedule& written, const LowerSpec& spec) {
  bool compute_only = true, splits = false;
  for (const auto& list : written.ranks) {
    for (const Action& action : list) {
      compute_only = compute_only && IsComputeKind(action.key.kind) && action.key.kind != Kind::recompute;
      splits = splits || action.key.kind == Kind::backward_weight;
    }
  }
  Require("stages", written.num_stages(), int64_t{spec.pipeline} * spec.chunks);
  if (!compute_only) {
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
  RequireNoEffect("parallel.route", !spec.placement.empty());
  Require("ranks (a file with compute only describes one pipeline)", written.num_ranks(), spec.pipeline);
  Require("micro-batches per replica", written.num_micro_batches(), spec.micro_batches / spec.data);
  Require("micro-batches left over when the batch is spread over the replicas", 0, spec.micro_batches % spec.data);

  Builder builder;
  builder.name = written.name;
  builder.splits_backward = splits;
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
        if (action.key.kind == Kind::backward) list.Backward(stage, m);
        if (action.key.kind == Kind::backward_input) list.BackwardInput(stage, m);
        if (action.key.kind == Kind::backward_weight) list.BackwardWeight(stage, m);
      }
    }
    return order;
  };
  return Lower(builder, spec);
}

}  // namespace penstock::schedule
