#include "schedule/builder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace penstock::schedule {
namespace {

constexpr int kMaxStages = std::numeric_limits<int16_t>::max();  // edges are numbered by Key::part

void CheckSizes(const Builder& builder, const PipelineShape& shape) {
  if (shape.ranks < 1 || shape.chunks < 1 || shape.micro_batches < 1)
    throw UserError("schedule '{}' needs at least 1 rank, 1 chunk and 1 micro-batch, not {}, {} and {}", builder.name,
                    shape.ranks, shape.chunks, shape.micro_batches);
  const int64_t stages = int64_t{shape.ranks} * shape.chunks;
  if (stages > kMaxStages)
    throw UserError("{} ranks with {} chunks are {} stages; at most {} can be numbered", shape.ranks, shape.chunks,
                    stages, kMaxStages);
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

}  // namespace penstock::schedule
