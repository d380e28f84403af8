// tests/simulate/unit_model.h
//
// A model of equal layers without parameters that keep a round number of bytes, one a stage: memory counts chunks.
#pragma once

#include "cost/memory.h"
#include "model/spec.h"
#include "model/units.h"
#include "schedule/schedule.h"

namespace penstock::simulate {

constexpr int64_t kUnitBytes = int64_t{1} << 30;

struct UnitModel {
  model::ModelSpec spec;
  model::Partition partition;
  std::vector<model::ModelUnit> units;

  explicit UnitModel(int stages) {
    partition.first.push_back(0);
    for (int s = 0; s < stages; ++s) {
      model::LayerSpec layer;
      layer.path = layer.kind = "unit";
      layer.forward_flops.per_token = layer.weight_flops.per_token = 1;
      // Operands of a deferred product: after the input half as much is kept as before.
      layer.saved_operands.per_sample = kUnitBytes / 4;
      spec.layers.push_back(layer);
      partition.first.push_back(s + 1);
    }
    units = model::MakeUnits(spec, partition);
  }

  cost::MemoryEstimate Estimate(const schedule::Schedule& schedule) const {
    return cost::EstimateMemory({.spec = spec,
                                 .partition = partition,
                                 .units = units,
                                 .schedule = schedule,
                                 .samples = 1,
                                 .length = 1,
                                 .precision = model::Precision::fp32,
                                 .optimizer_states = 0,
                                 .reproducible = false,
                                 .checkpoints = false,
                                 .snapshot = 0,
                                 .final_state = false,
                                 .stack = std::nullopt,
                                 .trace = true});
  }
};

}  // namespace penstock::simulate
