#include "model/units.h"

#include <map>

#include "base/error.h"

namespace penstock::model {

int StageOfLayer(const Partition& partition, int layer) {
  for (int s = 0; s < partition.stages(); ++s)
    if (layer < partition.first[s + 1]) return s;
  throw InternalError("layer beyond the last stage");
}

std::vector<ModelUnit> MakeUnits(const ModelSpec& spec, const Partition& partition) {
  const int parameters = static_cast<int>(spec.parameters.size());
  std::vector<std::vector<int>> layers_of(parameters);
  for (size_t l = 0; l < spec.layers.size(); ++l)
    for (const int p : spec.layers[l].parameters) layers_of[p].push_back(static_cast<int>(l));

  std::vector<ModelUnit> units(partition.stages());
  std::map<std::vector<int>, ModelUnit> shared;  // by the layers that use them: one unit for the same uses
  for (int p = 0; p < parameters; ++p) {
    PENSTOCK_CHECK(!layers_of[p].empty(), "parameter {} has no use", spec.parameters[p].name);
    const int64_t numel = spec.parameters[p].numel();
    ModelUnit& unit = layers_of[p].size() == 1 ? units[StageOfLayer(partition, layers_of[p][0])] : shared[layers_of[p]];
    unit.parameters.push_back(p);
    unit.numel += numel;
  }
  for (int s = 0; s < partition.stages(); ++s)
    if (!units[s].parameters.empty()) units[s].uses = {{s, -1}};
  for (auto& [layers, unit] : shared) {
    for (const int layer : layers) unit.uses.push_back({StageOfLayer(partition, layer), layer});
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace penstock::model
