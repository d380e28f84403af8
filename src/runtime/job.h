// src/runtime/job.h
//
// What all ranks of a run know: the computation (model, numerics, optimizer) and its cut into stages and units. The
// layout is in the schedule. Immutable while ranks run; shared by them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/loss_scale.h"
#include "model/partition.h"
#include "model/precision.h"
#include "model/spec.h"
#include "model/units.h"
#include "nn/layer.h"
#include "optim/optimizer.h"

namespace penstock::runtime {

// Sees every leaf and every final gradient: how `compare` tells a wrong leaf from a wrong fold (docs/numerics.md R16).
// Called from all rank threads.
class Observer {
 public:
  virtual ~Observer() = default;
  // Gradient of the loss of micro-batch `micro_batch` with respect to the use of `parameter` in `layer`; may be
  // undefined (absent).
  virtual void Leaf(int64_t step, int micro_batch, int layer, int parameter, const at::Tensor& gradient) = 0;
  // Gradient of `parameter` as the optimizer gets it, before clipping. Once per holder.
  virtual void Gradient(int64_t step, int parameter, const at::Tensor& gradient) = 0;
  // After the update of `parameter`, with its new state. Once per holder.
  virtual void Updated(int64_t step, int parameter, const optim::UpdateInput& input,
                       const optim::OptimizerState& state) = 0;
};

struct Job {
  model::ModelSpec spec;
  model::Partition partition;
  std::vector<model::ModelUnit> units;  // same order as Schedule::holders.units
  model::Precision precision = model::Precision::fp32;
  uint64_t seed = 1;
  bool reproducible = false;  // canonical tree (docs/numerics.md); else running sums
  bool serial = false;        // every action waits for its own completion: the reference semantics
  optim::OptimizerConfig optimizer;
  LossScaleConfig loss_scale;    // enabled: leaves are looked at for what is not finite, and unscaled
  int64_t total_updates = 1;     // where a cosine ends
  Observer* observer = nullptr;  // not owned; sees gradients as they are made
  // Fault seams of tests: what the loss of a micro-batch is taken for, and changes of a leaf while it is still scaled.
  std::function<double(int64_t step, int micro_batch, double loss_sum)> loss_fault;
  std::function<void(int64_t step, int micro_batch, int parameter, at::Tensor& gradient)> leaf_fault;
};

// Sizes and samples of one step, bound by the host at its start and equal on all ranks.
struct MicroBatchSize {
  int64_t samples = 0;
  int64_t length = 0;        // padded
  int64_t valid_tokens = 0;  // labels that count
};
struct StepBinding {
  int64_t step = 0;             // 0-based
  int64_t applied_updates = 0;  // before this step
  std::vector<MicroBatchSize> micro_batches;
  int64_t valid_tokens = 0;  // of the whole step: the N of the loss
  double loss_scale = 1;     // a power of two; only with Job::loss_scale
  bool dry = false;          // the verdict is made, no update is applied
  // The micro-batch itself; called by the ranks that need it, from several threads at once.
  std::function<nn::MicroBatchInputs(int micro_batch)> materialize;
};

}  // namespace penstock::runtime
