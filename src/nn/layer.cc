#include "nn/layer.h"

#include <torch/types.h>

#include "base/error.h"
#include "base/registry.h"

namespace penstock::nn {

std::vector<std::unique_ptr<Layer>> BuildLayers(const model::ModelSpec& spec, int first, int last) {
  PENSTOCK_CHECK(0 <= first && first <= last && last <= static_cast<int>(spec.layers.size()), "layers [{}, {}) of {}",
                 first, last, spec.layers.size());
  const LayerFamily& family = Registry<LayerFamily>::Find(spec.family);
  std::vector<std::unique_ptr<Layer>> layers;
  for (int i = first; i < last; ++i) layers.push_back(family.build(spec, i));
  return layers;
}

at::ScalarType WideType(model::Precision precision) {
  return precision == model::Precision::fp64 ? at::kDouble : at::kFloat;
}

}  // namespace penstock::nn
