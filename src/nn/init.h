// src/nn/init.h
//
// Initial parameters by keyed randomness (docs/numerics.md R8): key (seed, "init"), counter (hash of the canonical
// name, element). Any slice on any rank in any layout gets the same values.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "model/spec.h"

namespace penstock::nn {

// Elements [begin, begin + out.size()) of the parameter, row-major. Rounded to fp32 (also in fp64 runs, so that fp32
// and fp64 runs start from the same point).
void FillInitialValues(const model::ParameterSpec& parameter, uint64_t seed, int64_t begin, std::span<float> out);

// The whole parameter: contiguous, fp32, or widened to fp64. Runs on the caller's intra-op threads.
at::Tensor InitialParameter(const model::ParameterSpec& parameter, uint64_t seed, model::Precision precision);

}  // namespace penstock::nn
