#include "optim/optimizer.h"

#include <ATen/ops/zeros.h>

#include "base/error.h"

namespace penstock::optim {
namespace {

constexpr uintptr_t kAlignment = 64;

template <typename T>
ElementSpan<T> Span(const at::Tensor& parameter, const at::Tensor& gradient, const OptimizerState& state, int64_t begin,
                    int64_t end) {
  ElementSpan<T> span{.size = end - begin,
                      .parameter = parameter.mutable_data_ptr<T>() + begin,
                      .gradient = gradient.const_data_ptr<T>() + begin};
  for (int i = 0; i < state.size(); ++i) span.state[i] = state.tensor(i).mutable_data_ptr<T>() + begin;
  return span;
}

}  // namespace

bool DecayApplies(const OptimizerConfig& config, int64_t dimensions) {
  return config.decay == "all" || dimensions >= 2;
}

OptimizerState::OptimizerState(const Optimizer& optimizer, const OptimizerConfig& config, int64_t numel,
                               at::ScalarType dtype) {
  for (const std::string& state : optimizer.states(config)) {
    names_.push_back(optimizer.name + "." + state);
    tensors_.push_back(at::zeros({numel}, at::TensorOptions().dtype(dtype)));
    PENSTOCK_CHECK(reinterpret_cast<uintptr_t>(tensors_.back().const_data_ptr()) % kAlignment == 0,
                   "optimizer state is not aligned to {} bytes", kAlignment);
  }
  PENSTOCK_CHECK(size() <= kMaxOptimizerStates, "{} has {} states", optimizer.name, size());
}

int64_t OptimizerState::bytes() const {
  int64_t sum = 0;
  for (const at::Tensor& tensor : tensors_) sum += static_cast<int64_t>(tensor.nbytes());
  return sum;
}

void Update(const Optimizer& optimizer, const OptimizerConfig& config, const UpdateInput& input,
            const at::Tensor& parameter, const at::Tensor& gradient, OptimizerState& state, int64_t begin,
            int64_t end) {
  const int64_t numel = parameter.numel();
  if (end < 0) end = numel;
  PENSTOCK_CHECK(input.update >= 1, "update {} of an optimizer", input.update);
  PENSTOCK_CHECK(0 <= begin && begin <= end && end <= numel, "elements [{}, {}) of {}", begin, end, numel);
  PENSTOCK_CHECK_EQ(gradient.numel(), numel);
  PENSTOCK_CHECK(parameter.is_contiguous() && gradient.is_contiguous(), "an update needs contiguous tensors");
  PENSTOCK_CHECK(gradient.scalar_type() == parameter.scalar_type(), "gradient and parameter differ in dtype");
  for (int i = 0; i < state.size(); ++i) {
    PENSTOCK_CHECK_EQ(state.tensor(i).numel(), numel);
    PENSTOCK_CHECK(state.tensor(i).scalar_type() == parameter.scalar_type(), "state and parameter differ in dtype");
  }
  PENSTOCK_CHECK_EQ(state.size(), static_cast<int>(optimizer.states(config).size()));
  if (parameter.scalar_type() == at::kFloat) {
    optimizer.step_float(config, input, Span<float>(parameter, gradient, state, begin, end));
  } else {
    PENSTOCK_CHECK(parameter.scalar_type() == at::kDouble, "optimizers work on fp32 and fp64 (master) parameters");
    optimizer.step_double(config, input, Span<double>(parameter, gradient, state, begin, end));
  }
}

}  // namespace penstock::optim
