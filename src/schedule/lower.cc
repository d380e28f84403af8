#include "schedule/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "schedule/passes/check.h"
#include "schedule/passes/communication.h"
#include "schedule/passes/make_action.h"
#include "schedule/passes/recompute.h"
#include "schedule/passes/reduce.h"
#include "schedule/passes/split_backward.h"
#include "schedule/passes/update.h"

namespace penstock::schedule {
namespace {

constexpr int kMaxStages = 32767;  // edges are numbered by Key::part

void CheckSpec(const LowerSpec& spec) {
  if (spec.data < 1 || spec.pipeline < 1 || spec.chunks < 1 || spec.micro_batches < 1)
    throw UserError(
        "a mesh needs at least 1 replica, 1 pipeline position, 1 chunk and 1 micro-batch, not data {} x pipeline {} "
        "with "
        "{} chunks and {} micro-batches",
        spec.data, spec.pipeline, spec.chunks, spec.micro_batches);
  if (int64_t{spec.pipeline} * spec.chunks > kMaxStages)
    throw UserError("{} positions with {} chunks are more than {} stages", spec.pipeline, spec.chunks, kMaxStages);
  const size_t stages = static_cast<size_t>(spec.pipeline) * spec.chunks;
  const auto check_size = [](const char* what, size_t size, size_t needed) {
    if (size != 0 && size != needed) throw UserError("{} has {} entries; {} are needed (or none)", what, size, needed);
  };
  check_size("stage_has_parameters", spec.stage_has_parameters.size(), stages);
  check_size("recompute", spec.recompute.size(), stages);
  check_size("boundary_bytes", spec.boundary_bytes.size(), stages - 1);
  check_size("unit_bytes", spec.unit_bytes.size(), stages + spec.shared_parameters.size());
  for (const auto& uses : spec.shared_parameters) {
    if (uses.size() < 2) throw UserError("a shared parameter needs at least 2 uses, not {}", uses.size());
    if (!std::is_sorted(uses.begin(), uses.end()))
      throw UserError("the stages that use a shared parameter must ascend");
    if (uses.back() >= stages)
      throw UserError("a shared parameter is used by stage {}, but the last stage is {}", uses.back(), stages - 1);
  }
}

// Number of micro-batches of every replica.
std::vector<int> CountPerReplica(const LowerSpec& spec, const Route& route) {
  std::vector<int> counts(spec.data);
  for (const int32_t r : route.replica_of) ++counts[r];
  return counts;
}

// The order of one replica for each local number of micro-batches that occurs. 0 has no order: such a replica computes
// nothing, but holds its parameters.
std::map<int, ComputeOrder> BuildOrders(const Builder& builder, const LowerSpec& spec, const std::vector<int>& counts) {
  std::map<int, ComputeOrder> orders;
  for (const int count : counts) {
    if (count == 0 || orders.count(count)) continue;
    const PipelineShape shape{
        .ranks = spec.pipeline, .chunks = spec.chunks, .micro_batches = count, .placement = spec.placement};
    try {
      orders.emplace(count, BuildCompute(builder, shape));
    } catch (const UserError& error) {
      if (spec.data == 1) throw;
      throw UserError("{} micro-batches over {} replicas give one of them {}: {}", spec.micro_batches, spec.data, count,
                      error.what());
    }
  }
  return orders;
}

void AddHolders(Schedule& schedule, const LowerSpec& spec) {
  const auto& placement = schedule.route.placements[0];
  std::vector<int32_t> group_of_stage(placement.size());
  std::vector<std::vector<int32_t>> ranks_of_stage(placement.size());
  for (size_t s = 0; s < placement.size(); ++s) {
    for (int replica = 0; replica < spec.data; ++replica)
      ranks_of_stage[s].push_back(replica * spec.pipeline + placement[s]);
    group_of_stage[s] = schedule.GroupOf(ranks_of_stage[s]);
  }
  auto& units = schedule.holders.units;
  for (size_t s = 0; s < placement.size(); ++s) {
    ParameterUnit unit;
    unit.unit.stage = static_cast<uint16_t>(s);
    if (spec.stage_has_parameters.empty() || spec.stage_has_parameters[s]) {
      unit.uses.push_back({static_cast<uint16_t>(s), group_of_stage[s]});
      unit.group = group_of_stage[s];
    }
    units.push_back(unit);
  }
  for (const auto& stages : spec.shared_parameters) {
    ParameterUnit unit;
    unit.unit.stage = static_cast<uint16_t>(units.size());
    std::vector<int32_t> all;
    for (const uint16_t s : stages) {
      unit.uses.push_back({s, group_of_stage[s]});
      all.insert(all.end(), ranks_of_stage[s].begin(), ranks_of_stage[s].end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    unit.group = schedule.GroupOf(all);
    units.push_back(unit);
  }
}

}  // namespace

LowerSpec Folded(const LowerSpec& spec) {
  LowerSpec one = spec;
  one.fold = false;
  one.data = 1;
  one.micro_batches = spec.micro_batches / spec.data;
  if (spec.micro_batches % spec.data != 0 || one.micro_batches == 0)
    throw UserError(
        "{} micro-batches over {} replicas give them different numbers, so one cannot stand for all; use a multiple "
        "of {}, or simulate without folding",
        spec.micro_batches, spec.data, spec.data);
  return one;
}

Schedule AssembleCompute(const Builder& builder, const LowerSpec& spec) {
  CheckSpec(spec);
  if (spec.fold) {
    Schedule one = AssembleCompute(builder, Folded(spec));
    one.copies = spec.data;
    return one;
  }
  Schedule schedule;
  schedule.name = builder.name;
  schedule.contract = builder.contract;
  schedule.graph = StageGraph::Chain(spec.pipeline * spec.chunks);
  schedule.stage_options.resize(schedule.num_stages());
  schedule.route.pipeline_size = spec.pipeline;
  schedule.route.replica_of = ContiguousReplicas(spec.micro_batches, spec.data);

  const std::vector<int> counts = CountPerReplica(spec, schedule.route);
  const std::map<int, ComputeOrder> orders = BuildOrders(builder, spec, counts);
  const std::vector<int>& placement = orders.begin()->second.placement;
  for (const auto& [count, order] : orders)
    PENSTOCK_CHECK(order.placement == placement, "'{}' places stages by the number of micro-batches", builder.name);
  schedule.route.placements.push_back(placement);
  AddHolders(schedule, spec);

  schedule.ranks.resize(static_cast<size_t>(spec.data) * spec.pipeline);
  int first = 0;  // global index of the replica's first micro-batch
  for (int replica = 0; replica < spec.data; ++replica) {
    if (counts[replica] == 0) continue;
    const ComputeOrder& order = orders.at(counts[replica]);
    for (int position = 0; position < spec.pipeline; ++position) {
      auto& list = schedule.ranks[static_cast<size_t>(replica) * spec.pipeline + position];
      list.reserve(order.positions[position].ops().size());
      for (const ComputeOp& op : order.positions[position].ops())
        list.push_back(MakeCompute(op.kind, op.stage, first + op.micro_batch));
    }
    first += counts[replica];
  }
  return schedule;
}

const std::vector<Pass>& Passes() {
  static const std::vector<Pass> passes = {
      {"split_backward", "backward in two halves, or halves merged to one",
       [](const LowerSpec& spec) { return spec.split_backward != LowerSpec::Split::as_ordered; }, SplitBackward},
      {"recompute", "full recomputation of the flagged stages before their backward",
       [](const LowerSpec& spec) { return std::count(spec.recompute.begin(), spec.recompute.end(), true) > 0; },
       Recompute},
      {"communication", "boundary tensors between ranks", [](const LowerSpec& spec) { return spec.communication; },
       InsertCommunication, /*gives_messages=*/true},
      {"reduce", "gradients over their holders, then over the uses of shared parameters",
       [](const LowerSpec& spec) { return spec.reduce; }, ReduceGradients},
      {"check", "norms, gathered statistics and the verdict before the update",
       [](const LowerSpec& spec) { return spec.check; }, InsertChecks},
      {"update", "optimizer step of every held parameter unit", [](const LowerSpec& spec) { return spec.update; },
       InsertUpdates, /*gives_messages=*/false, /*gives_updates=*/true},
  };
  return passes;
}

VerifyOptions VerifyOptionsAfter(const Pass& pass, const LowerSpec& spec) {
  VerifyOptions options;
  options.expect_messages = options.expect_updates = false;
  for (const Pass& p : Passes()) {
    options.expect_messages = options.expect_messages || (p.gives_messages && p.enabled(spec));
    options.expect_updates = options.expect_updates || (p.gives_updates && p.enabled(spec));
    if (p.name == pass.name) break;
  }
  return options;
}

void RunPasses(Schedule& schedule, const LowerSpec& spec,
               const std::function<void(const Pass&, const Schedule&)>& after_pass) {
  for (const Pass& pass : Passes()) {
    if (!pass.enabled(spec)) continue;
    pass.run(schedule, spec);
    if (after_pass) after_pass(pass, schedule);
  }
}

Schedule Lower(const Builder& builder, const LowerSpec& spec,
               const std::function<void(const Pass&, const Schedule&)>& after_pass) {
  Schedule schedule = AssembleCompute(builder, spec);
  RunPasses(schedule, spec, after_pass);
  return schedule;
}

}  // namespace penstock::schedule
