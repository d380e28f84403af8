#include "schedule/builder.h"

#include <algorithm>
#include <limits>

#include <fmt/ranges.h>

#include "base/error.h"

namespace penstock::schedule {
namespace {

void CheckSizes(const Builder& builder, const PipelineShape& shape) {
  if (shape.ranks < 1 || shape.chunks < 1 || shape.micro_batches < 1)
    throw UserError("schedule '{}' needs at least 1 rank, 1 chunk and 1 micro-batch, not {}, {} and {}", builder.name,
                    shape.ranks, shape.chunks, shape.micro_batches);
  const int64_t stages = int64_t{shape.ranks} * shape.chunks;
  if (stages > std::numeric_limits<uint16_t>::max())
    throw UserError("{} ranks with {} chunks are {} stages; at most {} can be numbered", shape.ranks, shape.chunks,
                    stages, std::numeric_limits<uint16_t>::max());
}

std::string PlacementOf(const Builder& builder, const PipelineShape& shape) {
  if (shape.placement.empty()) return builder.placements.front();
  const auto& allowed = builder.placements;
  if (std::find(allowed.begin(), allowed.end(), shape.placement) == allowed.end())
    throw UserError("schedule '{}' does not run on a '{}' route; it takes {}", builder.name, shape.placement,
                    fmt::join(allowed, ", "));
  return shape.placement;
}

}  // namespace

ComputeOrder BuildCompute(const Builder& builder, const PipelineShape& shape) {
  CheckSizes(builder, shape);
  PipelineShape resolved = shape;
  resolved.placement = PlacementOf(builder, shape);
  if (builder.refuse)
    if (const auto reason = builder.refuse(resolved)) throw UserError("schedule '{}': {}", builder.name, *reason);
  return builder.build(resolved);
}

Schedule ComputeSchedule(const Builder& builder, const PipelineShape& shape) {
  const ComputeOrder order = BuildCompute(builder, shape);
  Schedule schedule;
  schedule.name = builder.name;
  schedule.graph = StageGraph::Chain(shape.stages());
  schedule.route.pipeline_size = shape.ranks;
  schedule.route.placements = {order.placement};
  schedule.route.replica_of.assign(shape.micro_batches, 0);
  schedule.contract = builder.contract;
  schedule.stage_options.resize(shape.stages());
  schedule.ranks.resize(shape.ranks);
  for (int position = 0; position < shape.ranks; ++position) {
    auto& actions = schedule.ranks[position];
    actions.reserve(order.positions[position].ops().size());
    for (const ComputeOp& op : order.positions[position].ops()) {
      Action action;
      action.key.kind = op.kind;
      action.key.unit.stage = static_cast<uint16_t>(op.stage);
      action.key.micro_batch = op.micro_batch;
      actions.push_back(action);
    }
  }
  return schedule;
}

}  // namespace penstock::schedule
