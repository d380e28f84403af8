// src/runtime/oracle.h
//
// Two references that share nothing with schedules, executor or communicator:
//   PlainLoop        one rank, micro-batch after micro-batch, the whole model uncut; leaves kept and folded by the
//                    canonical tree recursively (docs/numerics.md R1, R2, R5, R9). In reproducible mode every layout
//                    must give its bits.
//   WholeBatch       one plain backward() of the mean loss over all samples at once, the tied parameter used directly:
//                    what a reader would write. Equal to a tolerance.
// Slow and memory-hungry on purpose. Threads: one.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "nn/layer.h"
#include "optim/optimizer.h"
#include "runtime/job.h"

namespace penstock::runtime {

struct OracleStep {
  double loss = 0;
  double norm = 0;
  float clip_factor = 1.0f;
  bool applied = false;  // loss and norm were finite, so the update was made
};

class Oracle {
 public:
  explicit Oracle(const Job& job);
  virtual ~Oracle() = default;
  // Instead of initial weights; before the first step.
  void Start(const checkpoint::Checkpoint& weights);
  virtual OracleStep Step(const StepBinding& binding) = 0;
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<optim::OptimizerState>& states() const { return states_; }

 protected:
  // The whole chain on one micro-batch; parameters_of(layer) gives the tensors of the layer's uses.
  template <typename ParametersOf>
  at::Tensor Loss(const nn::MicroBatchInputs& inputs, int64_t step, const ParametersOf& parameters_of) const;
  // Unless the loss or the norm is not finite.
  void ApplyUpdate(const std::vector<at::Tensor>& gradients, const StepBinding& binding, OracleStep& step);

  const Job& job_;
  std::vector<std::unique_ptr<nn::Layer>> layers_;
  std::vector<at::Tensor> parameters_;
  std::vector<optim::OptimizerState> states_;
};

std::unique_ptr<Oracle> MakePlainLoop(const Job& job);
std::unique_ptr<Oracle> MakeWholeBatch(const Job& job);

}  // namespace penstock::runtime
