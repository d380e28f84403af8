// src/model/precision.h
//
// Arithmetic of a run.
//   fp32  everything in single precision.
//   fp64  everything in double precision; initial weights are the fp32 ones, widened. For equality tests.
//   bf16  mixed: parameters, residual stream, norms, attention and boundaries fp32; operands of the Linear and head
//         GEMMs rounded to bf16 (to nearest even), products accumulated in fp32. docs/numerics.md R12.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::model {

enum class Precision : uint8_t { fp32, fp64, bf16 };

std::string_view PrecisionName(Precision precision);
// UserError with the known names when there is none.
Precision ParsePrecision(std::string_view name);

// Bytes of an element of parameters, residual stream, gradients and boundaries.
constexpr int WideBytes(Precision precision) { return precision == Precision::fp64 ? 8 : 4; }
// Bytes of an element of a saved GEMM operand.
constexpr int OperandBytes(Precision precision) { return precision == Precision::bf16 ? 2 : WideBytes(precision); }

}  // namespace penstock::model
