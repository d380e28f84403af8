// src/cost/arithmetic.h
//
// Bytes of an element of everything a training step holds and moves: what a precision means on a kind of machine.
//   own        what this project's runtime does: fp32 (fp64) everywhere; in bf16 the kept GEMM operands are 2 bytes,
//              all else stays wide (docs/numerics.md R12)
//   mixed      the usual mixed precision of GPU systems: 16-bit weights, activations and messages, fp32 gradients and
//              master weights (Micikevicius et al. 2018; Korthikanti et al. 2022, section 4)
#pragma once

#include <string>

#include "model/precision.h"

namespace penstock::cost {

struct Arithmetic {
  std::string precision = "fp32";  // name of the device's flops (cluster/cluster.h)
  int weight_bytes = 4;            // of a parameter as the forward reads it
  int activation_bytes = 4;        // between operations
  int boundary_bytes = 4;          // between stages
  int gradient_bytes = 4;          // summed and reduced
  int master_bytes = 0;            // of a second copy of a parameter, beside weight_bytes; 0: none
  int state_bytes = 4;             // of one value of optimizer state
  bool own = true;                 // the runtime's own layout of kept tensors holds
};

Arithmetic OwnArithmetic(model::Precision precision);
// `precision`: "bf16" or "fp16".
Arithmetic MixedArithmetic(const std::string& precision);

}  // namespace penstock::cost
