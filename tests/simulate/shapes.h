// tests/simulate/shapes.h
//
// Every shape of a builder inside bounds, and lowered schedules of all kinds.
#pragma once

#include <string>

#include "base/error.h"
#include "simulate/replay_of_builder.h"

namespace penstock::simulate {

inline bool Refused(const schedule::Builder& builder, const schedule::PipelineShape& shape) {
  try {
    BuildCompute(builder, shape);
    return false;
  } catch (const UserError&) {
    return true;
  }
}

template <typename Use>
void ForEachShape(const schedule::Builder& builder, int max_ranks, int max_micro_batches, Use use) {
  for (int p = 1; p <= max_ranks; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = 1; m <= max_micro_batches; ++m)
        for (const std::string& placement : builder.placements) {
          const schedule::PipelineShape shape{p, v, m, placement};
          if (!Refused(builder, shape)) use(shape);
        }
}

inline std::string Describe(const schedule::Builder& b, const schedule::PipelineShape& s) {
  return fmt::format("{} P={} V={} M={} on {}", b.name, s.ranks, s.chunks, s.micro_batches, s.placement);
}

// A whole step of `shape`, on `data` replicas. `variant`: bit 0 recomputation, bit 1 tied ends, bit 2 split backward.
inline schedule::Schedule WholeStep(const schedule::Builder& builder, const schedule::PipelineShape& shape, int data,
                                    int variant = 0) {
  schedule::LowerSpec spec = SpecOf(shape);
  spec.data = data;
  spec.micro_batches *= data;
  const int stages = shape.stages();
  if (variant & 1) spec.recompute.assign(stages, true);
  if ((variant & 2) && stages > 1) spec.shared_parameters = {{0, static_cast<uint16_t>(stages - 1)}};
  if (variant & 4) spec.split_backward = schedule::LowerSpec::Split::always;
  return Lower(builder, spec);
}

}  // namespace penstock::simulate
