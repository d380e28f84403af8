// src/runtime/rank_state.h
//
// What one rank keeps from step to step: the parameters of the units it holds, their optimizer state, the layers of
// the stages it runs. Nothing else outlives a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <vector>

#include "nn/layer.h"
#include "optim/optimizer.h"
#include "runtime/job.h"
#include "schedule/schedule.h"

namespace penstock::runtime {

class RankState {
 public:
  // Holds nothing: an emulated rank.
  RankState() = default;
  // Initial parameters by keyed randomness, zero optimizer state.
  RankState(const Job& job, const schedule::Schedule& schedule, int rank);

  bool holds(int parameter) const { return parameters_[parameter].defined(); }
  // Indexed like ModelSpec::parameters; undefined when this rank does not hold it.
  const at::Tensor& parameter(int index) const { return parameters_[index]; }
  optim::OptimizerState& optimizer_state(int index) { return states_[index]; }
  const std::vector<std::unique_ptr<nn::Layer>>& layers(int stage) const;

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<optim::OptimizerState> states_;
  std::map<int, std::vector<std::unique_ptr<nn::Layer>>> layers_;  // by stage
};

}  // namespace penstock::runtime
