#include "model/family.h"

namespace penstock::model {

ModelSpec BuildModel(const ModelConfig& config) { return Registry<ModelFamily>::Find(config.family).build(config); }

}  // namespace penstock::model
