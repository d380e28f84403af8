// src/optim/sgd.cc
//
// Stochastic gradient descent with optional momentum (Sutskever et al., "On the importance of initialization and
// momentum in deep learning", ICML'13, as libtorch writes it) and L2 weight decay added to the gradient. State: the
// momentum buffer, 1 value per element, none without momentum.

#include "optim/elementwise_kernel.h"
#include "optim/optimizer.h"

namespace penstock::optim {
namespace {

std::vector<std::string> States(const OptimizerConfig& config) {
  return config.momentum == 0.0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum"};
}

template <typename T>
void Step(const OptimizerConfig& config, const UpdateInput& input, const ElementSpan<T>& x) {
  const SgdScalars<T> scalars{
      .scale = static_cast<T>(input.gradient_scale),
      .decay = static_cast<T>(input.decay ? config.weight_decay : 0.0),
      .momentum = static_cast<T>(config.momentum),
      .lr = static_cast<T>(input.learning_rate),
      .nesterov = config.nesterov,
  };
  SgdStep(scalars, x.parameter, x.gradient, x.state[0], x.size);
}

// The step is linear in the gradients: the buffer is off by at most 1 / (1 - momentum) of their error, Nesterov's
// look-ahead by `momentum` times that and the error itself.
double Sensitivity(const OptimizerConfig& config, int64_t, const std::array<double, kMaxOptimizerStates>&) {
  const double buffer = 1.0 / (1.0 - config.momentum);
  return config.nesterov ? 1.0 + config.momentum * buffer : buffer;
}

const Register<Optimizer> kRegister{{
    .name = "sgd",
    .summary = "gradient descent with momentum, Nesterov's or plain (1 value per parameter, or none)",
    .states = &States,
    .step_float = &Step<float>,
    .step_double = &Step<double>,
    .sensitivity = &Sensitivity,
}};

}  // namespace
}  // namespace penstock::optim
