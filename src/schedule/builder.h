// src/schedule/builder.h
//
// A builder orders the compute of one pipeline: P positions, V chunks (stages) per position, M micro-batches. Passes
// derive the rest (schedule/passes/). One file per builder in builders/, with the paper, the closed forms and the
// domain where they are exact; builders register themselves.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/rational.h"
#include "base/registry.h"
#include "schedule/contract.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

struct PipelineShape {
  int ranks = 1;          // P, pipeline positions
  int chunks = 1;         // V, stages per position; stages() = P * V
  int micro_batches = 1;  // M
  std::string placement;  // name of schedule/route.h; empty: the builder's default
  int stages() const { return ranks * chunks; }
};

struct ComputeOp {
  Kind kind = Kind::forward;  // forward, backward, backward_input, backward_weight; recompute in written orders
  int stage = 0;
  int micro_batch = 0;  // local: 0 .. M-1
  friend bool operator==(const ComputeOp&, const ComputeOp&) = default;
};

// The list of one position, with the words a builder needs.
class ComputeList {
 public:
  void Forward(int stage, int micro_batch) { ops_.push_back({Kind::forward, stage, micro_batch}); }
  void Recompute(int stage, int micro_batch) { ops_.push_back({Kind::recompute, stage, micro_batch}); }
  void Backward(int stage, int micro_batch) { ops_.push_back({Kind::backward, stage, micro_batch}); }
  void BackwardInput(int stage, int micro_batch) { ops_.push_back({Kind::backward_input, stage, micro_batch}); }
  void BackwardWeight(int stage, int micro_batch) { ops_.push_back({Kind::backward_weight, stage, micro_batch}); }
  const std::vector<ComputeOp>& ops() const { return ops_; }

 private:
  std::vector<ComputeOp> ops_;
};

struct ComputeOrder {
  std::vector<int> placement;          // [stage] -> position
  std::vector<ComputeList> positions;  // [position]
};

// Durations of one action on one (chunk, micro-batch). `hop` is the latency of a message between different ranks.
struct UniformCosts {
  Rational forward = 1, backward_input = 1, backward_weight = 1;  // of one chunk
  Rational hop = 0;
  Rational backward() const { return backward_input + backward_weight; }
  // T_F, T_I, T_W of pipeline_schedules.md: per position share, all its chunks together.
  static UniformCosts PerRank(Rational f, Rational i, Rational w, int chunks) {
    return {f / Rational(chunks), i / Rational(chunks), w / Rational(chunks), 0};
  }
};

// Closed forms; nullopt where the shape or the costs are outside the domain in which they are exact. Times in the
// unit of the costs, latency-free.
struct ClosedForms {
  // Time from the first start to the last end over all positions.
  std::function<std::optional<Rational>(const PipelineShape&, const UniformCosts&)> makespan;
  // Largest (last end - first start) over the positions.
  std::function<std::optional<Rational>(const PipelineShape&, const UniformCosts&)> max_span;
  // Peak number of micro-batches whose activations are alive on a position, in units of one position share
  // (a chunk counts 1/V). Acquired at the start of forward, released at the end of backward or backward_weight.
  std::function<std::optional<Rational>(const PipelineShape&, int position)> peak_micro_batches;
};

struct Builder {
  static constexpr const char* kRegistryName = "schedule";
  std::string name;
  std::string summary;
  std::string source;                   // paper, section
  std::vector<std::string> placements;  // allowed, default first
  bool splits_backward = false;
  int default_chunks = 1;  // V where the user names none
  // Why this shape cannot be built and what would work; nullopt when it can.
  std::function<std::optional<std::string>(const PipelineShape&)> refuse;
  std::function<ComputeOrder(const PipelineShape&)> build;
  ClosedForms closed_forms;
  Contract contract;
};
using RegisterBuilder = Register<Builder>;

// Checks the sizes, the placement and `refuse` (UserError with the reason), then builds.
ComputeOrder BuildCompute(const Builder& builder, const PipelineShape& shape);

}  // namespace penstock::schedule
