// src/model/precision.h
//
// Arithmetic of a run.
//   fp32  everything in single precision.
//   fp64  everything in double precision; initial weights are the fp32 ones, widened. For equality tests.
//   bf16  mixed: parameters, residual stream, norms, attention and boundaries fp32; operands of the Linear and head
//         GEMMs rounded to bf16 (to nearest even), products accumulated in fp32. docs/numerics.md R12.
//   fp16  the same with fp16 operands. Beyond 65,504 they are infinite, below 2^-24 they are zero, which is why the
//         loss is scaled (base/loss_scale.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::model {

enum class Precision : uint8_t { fp32, fp64, bf16, fp16 };

std::string_view PrecisionName(Precision precision);
// UserError with the known names when there is none.
Precision ParsePrecision(std::string_view name);

// Bytes of an element of parameters, residual stream, gradients and boundaries.
constexpr int WideBytes(Precision precision) { return precision == Precision::fp64 ? 8 : 4; }
// Bytes of an element of a saved GEMM operand.
constexpr int OperandBytes(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp16 ? 2 : WideBytes(precision);
}

}  // namespace penstock::model
