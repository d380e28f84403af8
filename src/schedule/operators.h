// src/schedule/operators.h
//
// Operators are open: a task, collective, check, copy or message names one. Each is registered by a file in
// schedule/ops with its effects; its handler is in runtime/ops, and a test demands both. Prices: schedule/costs.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "schedule/effects.h"

namespace penstock::schedule {

struct Operator {
  static constexpr const char* kRegistryName = "operator";
  std::string name;  // "reduce", "activation", "kfac.factor"
  Kind kind = Kind::task;
  std::string summary;
  std::function<void(const Schedule&, int rank, const Action&, std::vector<Effect>&)> effects;
};

using RegisterOperator = Register<Operator>;

// Dense ids: 1 + index in the registry's order by name. They are not stable between builds: files store names.
OpId FindOp(std::string_view name);  // UserError for an unknown name
const Operator& OpOf(OpId id);
std::string_view OpName(OpId id);  // "" for kNoOp

// The operators every schedule of a training step uses (schedule/ops/*.cc).
namespace ops {
inline constexpr std::string_view kActivation = "activation";  // send, recv: boundary values of an edge
inline constexpr std::string_view kGradient = "gradient";      // send, recv: boundary gradients of an edge
inline constexpr std::string_view kReduce = "reduce";          // collective: gradient of one use over its group
inline constexpr std::string_view kSumUses = "sum_uses";       // collective: total over the uses of a shared unit
inline constexpr std::string_view kNorm = "norm";              // task: sum of squares, non-finite count of a unit
inline constexpr std::string_view kGatherStatistics = "gather_statistics";  // collective: losses and norms to all ranks
inline constexpr std::string_view kFiniteClip =
    "finite_clip";  // check: all finite? sets predicate 0 and the clip factor
}  // namespace ops

}  // namespace penstock::schedule
