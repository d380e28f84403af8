// src/optim/optimizer.h
//
// Element-wise optimizers. The result of an element depends on that element's inputs only (docs/numerics.md R11), so
// a parameter may be updated whole or in any pieces, on one rank or on many, with the same bits. A new optimizer is
// one file that registers itself, plus its test.
//
//   const Optimizer& optimizer = Registry<Optimizer>::Find(config.name);
//   OptimizerState state(optimizer, config, numel, at::kFloat);
//   UpdateInput input{.update = applied + 1, .learning_rate = lr, .gradient_scale = factor, .decay = ...};
//   Update(optimizer, config, input, parameter, gradient, state);       // flat or shaped, contiguous, equal numel
// Threads: Update may run on several threads for different ranges.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/optimizer_config.h"
#include "base/registry.h"

namespace penstock::optim {

inline constexpr int kMaxOptimizerStates = 2;

// What the elements of an update have in common.
struct UpdateInput {
  int64_t update = 1;           // 1 for the first applied update of the run (bias correction)
  double learning_rate = 0.0;   // LearningRate(config, update - 1, ...)
  double gradient_scale = 1.0;  // every gradient element is multiplied by this first: clipping factor / loss scale
  bool decay = true;            // weight decay applies to this parameter (DecayApplies)
};

// A run of elements of one parameter: T is float or double, every array has `size` elements.
template <typename T>
struct ElementSpan {
  int64_t size = 0;
  T* parameter = nullptr;
  const T* gradient = nullptr;
  std::array<T*, kMaxOptimizerStates> state{};
};

struct Optimizer {
  static constexpr const char* kRegistryName = "optimizer";
  std::string name;
  std::string summary;
  // Names of the state tensors under this config, each of the parameter's size; checkpoints call them
  // "<name>.<state>/<parameter>".
  std::vector<std::string> (*states)(const OptimizerConfig& config);
  void (*step_float)(const OptimizerConfig& config, const UpdateInput& input, const ElementSpan<float>& elements);
  void (*step_double)(const OptimizerConfig& config, const UpdateInput& input, const ElementSpan<double>& elements);
  // For comparisons of runs whose gradients agree to rounding: an optimizer that divides by the size of the gradient
  // moves a parameter whose gradient is nothing but rounding noise by a full step in any direction.
  // `sensitivity`: by how much an update moves an element farther or less far when all its gradients so far are off by
  // one unit, to first order, in units of the learning rate; from the element's states after `updates` updates.
  // `largest_step`: two updates of one element never differ by more, in the same units.
  double (*sensitivity)(const OptimizerConfig& config, int64_t updates,
                        const std::array<double, kMaxOptimizerStates>& states);
  double largest_step = std::numeric_limits<double>::infinity();
};

// Does weight decay apply to a parameter with this many dimensions?
bool DecayApplies(const OptimizerConfig& config, int64_t dimensions);

// State of one parameter, or of one shard of it: flat zero-initialised tensors that start on 64-byte borders.
class OptimizerState {
 public:
  OptimizerState() = default;
  OptimizerState(const Optimizer& optimizer, const OptimizerConfig& config, int64_t numel, at::ScalarType dtype);

  int size() const { return static_cast<int>(tensors_.size()); }
  const std::string& name(int i) const { return names_[i]; }
  const at::Tensor& tensor(int i) const { return tensors_[i]; }
  int64_t bytes() const;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> tensors_;
};

// Updates elements [begin, end) of `parameter` in place (-1: to the end). Parameter, gradient and state have one
// dtype (at::kFloat or at::kDouble), are contiguous and have equal numel.
void Update(const Optimizer& optimizer, const OptimizerConfig& config, const UpdateInput& input,
            const at::Tensor& parameter, const at::Tensor& gradient, OptimizerState& state, int64_t begin = 0,
            int64_t end = -1);

}  // namespace penstock::optim
