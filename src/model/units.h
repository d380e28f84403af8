// src/model/units.h
//
// Parameter units of a partitioned model: what a schedule reduces and updates as one. Unit s < S holds the parameters
// that one layer of stage s uses and nobody else. A parameter that several layers use (tied embeddings) is in a unit
// of its own after them, with one use per layer, in layer order - also when both layers are in one stage, since the
// sum over uses is part of the numerics (docs/numerics.md R5).
#pragma once

#include <vector>

#include "model/partition.h"
#include "model/spec.h"

namespace penstock::model {

struct UnitUse {
  int stage = 0;
  int layer = -1;  // -1 for a stage's own unit: all its layers
};

struct ModelUnit {
  std::vector<int> parameters;  // indices into ModelSpec::parameters, canonical order
  std::vector<UnitUse> uses;    // empty: the stage has no parameters of its own
  int64_t numel = 0;
};

std::vector<ModelUnit> MakeUnits(const ModelSpec& spec, const Partition& partition);

// Stage of a layer.
int StageOfLayer(const Partition& partition, int layer);

}  // namespace penstock::model
