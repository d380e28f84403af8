// src/session/run/recorded_run.h
//
// A run kept whole for comparison: final state, losses and norms of every step, and a hash of every leaf and every
// final gradient, so that a difference is traced to where it began (docs/numerics.md R16).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/optimizer_config.h"
#include "checkpoint/compare.h"
#include "session/run/prepare.h"

namespace penstock::session {

struct LeafKey {
  int64_t step = 0;
  int parameter = 0;
  int layer = 0;
  int micro_batch = 0;
  friend auto operator<=>(const LeafKey&, const LeafKey&) = default;
};
struct GradientKey {
  int64_t step = 0;
  int parameter = 0;
  friend auto operator<=>(const GradientKey&, const GradientKey&) = default;
};

struct RecordedRun {
  std::string title;
  model::Precision precision = model::Precision::fp32;
  optim::OptimizerConfig optimizer_config;
  int64_t applied = 0;                // updates; fewer than steps when something was not finite
  std::vector<double> losses, norms;  // [step]
  checkpoint::NamedTensors parameters, optimizer;
  std::map<LeafKey, Hash128> leaves;  // empty for oracles that have none
  std::map<GradientKey, Hash128> gradients;
  // What rounding of gradients can do (rounding.h), over the updates; zeros when it was not recorded.
  struct Rounding {
    double largest_gradient = 0;  // magnitude of any element, after clipping
    at::Tensor sensitivity;       // learning rate times sensitivity, summed; flat, fp64
  };
  std::map<std::string, Rounding> rounding;  // by parameter
  double learning_rates = 0;                 // summed
};

enum class RecordRounding { yes, no };  // no: when the other side of a comparison has it (a quarter faster)

// Runs all steps of the prepared run on thread ranks, from the beginning: from initial weights, or what
// checkpoint.weights names.
RecordedRun RecordRun(const LoadedSettings& settings, PreparedRun& run, std::string title,
                      RecordRounding rounding = RecordRounding::yes);

enum class OracleKind { plain, whole };  // runtime/oracle.h
// The same for a reference.
RecordedRun RecordOracle(const LoadedSettings& settings, PreparedRun& run, OracleKind kind);

struct RunComparison {
  checkpoint::Verdict verdict = checkpoint::Verdict::equal;  // the worst of losses, norms and tensors
  std::string first;                                         // where it began, in words; empty when equal
  checkpoint::Comparison tensors;
  double loss_difference = 0, norm_difference = 0;  // largest relative
};
// What gradients that agree to rounding may do counts as rounding (rounding.h). `bits_promised`: whether a difference
// is wrong, or only where the runs part; decides the words of `first`, not the verdict.
RunComparison CompareRuns(const model::ModelSpec& spec, const RecordedRun& a, const RecordedRun& b,
                          bool bits_promised = true, const checkpoint::RoundingBounds& bounds = {});

}  // namespace penstock::session
