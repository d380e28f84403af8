// src/optim/adamw.cc
//
// AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR'19, algorithm 2, with the bias
// corrections as libtorch applies them. State: m and v, 2 values per element.

#include <algorithm>
#include <cmath>

#include "optim/elementwise_kernel.h"
#include "optim/optimizer.h"

namespace penstock::optim {
namespace {

std::vector<std::string> States(const OptimizerConfig&) { return {"m", "v"}; }

template <typename T>
void Step(const OptimizerConfig& config, const UpdateInput& input, const ElementSpan<T>& x) {
  const auto t = static_cast<double>(input.update);
  const AdamWScalars<T> scalars{
      .scale = static_cast<T>(input.gradient_scale),
      .keep = static_cast<T>(1.0 - (input.decay ? input.learning_rate * config.weight_decay : 0.0)),
      .one_minus_beta1 = static_cast<T>(1.0 - config.beta1),
      .beta2 = static_cast<T>(config.beta2),
      .one_minus_beta2 = static_cast<T>(1.0 - config.beta2),
      .step = static_cast<T>(input.learning_rate / (1.0 - std::pow(config.beta1, t))),
      .root = static_cast<T>(std::sqrt(1.0 - std::pow(config.beta2, t))),
      .eps = static_cast<T>(config.eps),
  };
  AdamWStep(scalars, x.parameter, x.gradient, x.state[0], x.state[1], x.size);
}

// The step is m / sqrt(v) with bias corrections, both off by the error of the gradients.
double Sensitivity(const OptimizerConfig& config, int64_t updates,
                   const std::array<double, kMaxOptimizerStates>& states) {
  const double correction = 1.0 - std::pow(config.beta2, static_cast<double>(updates));
  return 2.0 / (std::sqrt(std::max(0.0, states[1]) / correction) + config.eps);
}

const Register<Optimizer> kRegister{{
    .name = "adamw",
    .summary = "Adam with decoupled weight decay (2 values per parameter)",
    .states = &States,
    .step_float = &Step<float>,
    .step_double = &Step<double>,
    .sensitivity = &Sensitivity,
    .largest_step = 2.0,
}};

}  // namespace
}  // namespace penstock::optim
