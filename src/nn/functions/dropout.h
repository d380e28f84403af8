// Dropout by keyed randomness (docs/numerics.md R8): key (seed, "dropout"), counter (step, site, sample in the global
// batch, element of the sample). The mask is not kept: the backward computes it again, so does recomputation.
// A site is the hash of a layer path and of the place inside the layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "nn/layer.h"

namespace penstock::nn {

uint32_t DropoutSite(std::string_view layer_path, std::string_view place);

// x [batch, ..]; x itself when probability = 0 or outside of training.
at::Tensor KeyedDropout(const at::Tensor& x, double probability, uint32_t site, const LayerContext& context);

}  // namespace penstock::nn
