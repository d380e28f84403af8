// src/base/loss_scale.h
//
// The factor on the loss of an fp16 run (Micikevicius et al. 2018, section 3.2). Small gradients would be zero in fp16;
// the backward pass works on gradients that are `scale` times as large, and each is divided by it as soon as it is
// made. The scale is a power of two, so both are exact. A gradient that is not finite means that it was too large: the
// update is left out and the scale reduced; after enough updates without such a step it grows again.
//
//   LossScale scale(config);                        // or with the state of a checkpoint
//   ... a step with scale.value() ...
//   scale.After(LossScale::Step::applied);
//
// Every rank keeps its own and feeds it the same verdicts, so all have the same scale without a message.
// Threads: none of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/config.h"

namespace penstock {

bool IsPowerOfTwo(double value);

// Keys loss_scale... of section [numerics]. All factors are powers of two.
struct LossScaleConfig {
  bool enabled = false;  // else the scale is 1, and only what was skipped is counted
  std::string mode = "dynamic";
  double initial = 65536;
  double growth = 2;
  double backoff = 0.5;
  int64_t interval = 2000;  // updates in a row before it grows
  double minimum = 1;
  double maximum = 16777216;
  int64_t max_skipped = 20;  // updates left out in a row that end the run

  // The keys have an effect where `enabled_text` is true.
  void Declare(config::Section& s, const std::function<bool()>& enabled, const std::string& enabled_text);
};

// What a checkpoint keeps.
struct LossScaleState {
  double scale = 1;
  int64_t clean = 0;             // updates since the scale changed or one was left out
  int64_t skipped_in_a_row = 0;  // the steps up to now
  int64_t skipped = 0;           // of the whole run

  friend bool operator==(const LossScaleState&, const LossScaleState&) = default;
};

class LossScale {
 public:
  enum class Step {
    applied,
    gradient_not_finite,
    loss_not_finite,  // says nothing about the scale: the forward pass has none
  };

  explicit LossScale(const LossScaleConfig& config);
  // Goes on from a saved state. UserError when it cannot be one: the scale is no power of two, a count is negative.
  LossScale(const LossScaleConfig& config, const LossScaleState& state);

  double value() const { return state_.scale; }
  const LossScaleState& state() const { return state_; }
  void After(Step step);
  // So many updates were left out in a row that the run should end.
  bool exhausted() const { return config_.enabled && state_.skipped_in_a_row >= config_.max_skipped; }

 private:
  LossScaleConfig config_;
  LossScaleState state_;
};

}  // namespace penstock
