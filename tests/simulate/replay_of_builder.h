// tests/simulate/replay_of_builder.h
#pragma once

#include <string>

#include "schedule/builder.h"
#include "schedule/costs.h"
#include "schedule/lower.h"
#include "simulate/list_engine.h"

namespace penstock::simulate {

inline schedule::LowerSpec SpecOf(const schedule::PipelineShape& shape) {
  schedule::LowerSpec spec;
  spec.pipeline = shape.ranks;
  spec.chunks = shape.chunks;
  spec.micro_batches = shape.micro_batches;
  spec.placement = shape.placement;
  return spec;
}

inline schedule::Schedule ComputeOnly(const schedule::Builder& builder, const schedule::PipelineShape& shape) {
  return AssembleCompute(builder, SpecOf(shape));
}

inline Replay<Rational> ReplayBuilder(const std::string& name, const schedule::PipelineShape& shape,
                                      const schedule::UniformCosts& costs) {
  const auto& builder = Registry<schedule::Builder>::Find(name);
  return ReplayInOrder<Rational>(ComputeOnly(builder, shape), schedule::UniformActionCosts(costs));
}

}  // namespace penstock::simulate
