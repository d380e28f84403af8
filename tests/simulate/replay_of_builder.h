// tests/simulate/replay_of_builder.h
#pragma once

#include <string>

#include "schedule/builder.h"
#include "schedule/costs.h"
#include "simulate/list_engine.h"

namespace penstock::simulate {

inline Replay<Rational> ReplayBuilder(const std::string& name, const schedule::PipelineShape& shape,
                                      const schedule::UniformCosts& costs) {
  const auto& builder = Registry<schedule::Builder>::Find(name);
  return ReplayInOrder<Rational>(ComputeSchedule(builder, shape), schedule::UniformActionCosts(costs));
}

}  // namespace penstock::simulate
