// src/checkpoint/compare.h
//
// Compares two sets of named tensors: two states of a run, two layouts, two checkpoints (docs/numerics.md R16). NaN
// equals NaN; +0 and -0 differ (they are other bits) by rounding. Stateless; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace penstock::checkpoint {

// equal: same bits. rounding: differences within the bound of the dtype. fault: more than that, a missing tensor,
// another shape or dtype, or a value that is finite on one side only.
enum class Verdict { equal, rounding, fault };
const char* VerdictName(Verdict verdict);

struct TensorDifference {
  std::string name;
  Verdict verdict = Verdict::equal;
  std::string reason;       // when not a matter of values: "only in a", "shape [2] against [3]", ...
  int64_t count = 0;        // elements that differ
  int64_t element = -1;     // the first of them, flattened
  double a = 0.0, b = 0.0;  // its values
  uint64_t ulp = 0;         // its distance in units in the last place; all ones for NaN against a number
  uint64_t max_ulp = 0;
  double max_absolute = 0.0;
  double max_relative = 0.0;  // max_absolute / largest magnitude in the two tensors; bounded below
  std::string ToString() const;
};

struct Comparison {
  Verdict verdict = Verdict::equal;           // the worst
  int64_t tensors = 0;                        // compared
  std::vector<TensorDifference> differences;  // in order of comparison; the first is the one to look at
  void Add(TensorDifference difference);
  std::string ToString() const;  // one line per difference, at most 10
};

// Bounds on max_relative below which a difference counts as rounding.
struct RoundingBounds {
  double fp64 = 1e-10;
  double fp32 = 1e-5;
  double half = 2e-2;  // bf16, fp16
  // Absolute difference that element i may have beside that, for tensors whose own magnitude says nothing about the
  // error of their elements; none when empty.
  std::function<double(int64_t element)> allowance = {};
};

TensorDifference CompareTensor(const std::string& name, const at::Tensor& a, const at::Tensor& b,
                               const RoundingBounds& bounds = {});

// Tensors are fetched pairwise in the order of `a`, so `b` must allow any order (memory, file). Names that are missing
// on either side are faults; those that only `b` has come last.
Comparison Compare(const TensorSource& a, const TensorSource& b, const RoundingBounds& bounds = {});
Comparison Compare(const NamedTensors& a, const NamedTensors& b, const RoundingBounds& bounds = {});
// The same with bounds of each tensor's own.
using BoundsOf = std::function<RoundingBounds(const std::string& name)>;
Comparison Compare(const NamedTensors& a, const NamedTensors& b, const BoundsOf& bounds_of);

}  // namespace penstock::checkpoint
