// src/runtime/gradients.h
//
// The gradients of a parameter unit in the states they go through: partial sums, reduced, total over the uses.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/executor.h"

namespace penstock::runtime {

// Completes the sums of (unit, use) from what this rank has, when no reduction did: one tensor per parameter of the
// unit, in the buffer.
std::vector<at::Tensor>& LocalGradients(ExecutionContext& context, int unit, int use);

// The gradient that norm and update read: total over the uses of a shared unit, the only use of another.
std::vector<at::Tensor>& FinalGradients(ExecutionContext& context, int unit);

// A zero gradient of a parameter: what a holder without micro-batches brings and a parameter without leaves gets.
at::Tensor ZeroGradient(const ExecutionContext& context, int parameter);

}  // namespace penstock::runtime
