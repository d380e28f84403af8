// src/runtime/layer_clock.h
//
// Times of single layers inside the actions of one rank, for a profile: forwards by reading the clock between layers,
// backwards by hooks on the tensors between them (a hook runs when everything behind that tensor has been
// differentiated), weight halves of a split backward by their flops. What an action took beside its layers is kept
// apart. Reading the clock and the hooks cost about a microsecond a layer, and nothing when the clock is off.
// Threads: one rank thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "schedule/action.h"

namespace penstock::runtime {

// What was measured once.
struct LayerSample {
  schedule::Kind kind = schedule::Kind::forward;  // forward (also of a recompute), backward, backward_input, _weight
  int32_t layer = -1;                             // -1: of the whole action, what it took beside its layers
  int32_t micro_batch = -1;
  int64_t samples = 0;  // of the micro-batch
  double seconds = 0;
};

class LayerClock {
 public:
  using Clock = std::chrono::steady_clock;

  void Enable(bool on) { on_ = on; }
  bool on() const { return on_; }

  // An action begins; what is added until EndAction belongs to it.
  void BeginAction(schedule::Kind kind, int32_t micro_batch, int64_t samples);
  void Add(int32_t layer, double seconds);
  // `seconds`: of the whole action, without waiting.
  void EndAction(double seconds);

  // A backward: `Mark` when the gradient of the output of a layer is there. The last layer's is there from the start;
  // EndBackward when the gradients of the stage's inputs are.
  void HookOutput(at::Tensor& output, int32_t layer);
  void BeginBackward(int32_t last_layer);
  void EndBackward();

  std::vector<LayerSample> Take() { return std::move(samples_); }

 private:
  void Mark(int32_t layer);

  bool on_ = false;
  schedule::Kind kind_ = schedule::Kind::forward;
  int32_t micro_batch_ = -1;
  int64_t micro_batch_samples_ = 0;
  std::vector<LayerSample> pending_;  // of the action
  std::vector<LayerSample> samples_;
  int32_t current_ = -1;  // layer that is being differentiated; -1: none
  Clock::time_point since_;
};

}  // namespace penstock::runtime
