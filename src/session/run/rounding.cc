#include "session/run/rounding.h"

#include <algorithm>
#include <cmath>

#include "optim/optimizer.h"

namespace penstock::session {
namespace {

std::string KindOf(const std::string& state_name) { return state_name.substr(0, state_name.find('/')); }

}  // namespace

RoundingAllowance::RoundingAllowance(const RecordedRun& a, const RecordedRun& b, double bound,
                                     const checkpoint::RoundingBounds& bounds)
    : a_(a), b_(b), bound_(bound), bounds_(bounds) {
  for (const RecordedRun* run : {&a, &b})
    for (const auto& [name, rounding] : run->rounding)
      gradient_error_ = std::max(gradient_error_, bound * rounding.largest_gradient);
  largest_movement_ = std::max(a.learning_rates, b.learning_rates) *
                      Registry<optim::Optimizer>::Find(a.optimizer_config.name).largest_step;
  for (const RecordedRun* run : {&a, &b})
    for (const auto& [name, state] : run->optimizer) {
      const double largest = state.numel() == 0 ? 0.0 : state.abs().max().item<double>();
      if (!std::isfinite(largest)) continue;
      for (const std::string& key : {name, KindOf(name)}) largest_state_[key] = std::max(largest_state_[key], largest);
    }
}

checkpoint::RoundingBounds RoundingAllowance::ForParameter(const std::string& name) const {
  checkpoint::RoundingBounds bounds = bounds_;
  const auto in_a = a_.rounding.find(name), in_b = b_.rounding.find(name);
  if (in_a == a_.rounding.end() || in_b == b_.rounding.end()) return bounds;  // a fault, whatever its values
  const at::Tensor &x = in_a->second.sensitivity, &y = in_b->second.sensitivity;
  if (x.numel() != y.numel()) return bounds;
  bounds.allowance = [this, x = x.const_data_ptr<double>(), y = y.const_data_ptr<double>()](int64_t element) {
    return std::min(gradient_error_ * std::max(x[element], y[element]), largest_movement_);
  };
  return bounds;
}

checkpoint::RoundingBounds RoundingAllowance::ForState(const std::string& name) const {
  const auto kind = largest_state_.find(KindOf(name));
  checkpoint::RoundingBounds bounds = bounds_;
  if (kind == largest_state_.end()) return bounds;
  // Twice: a state may be quadratic in the gradients.
  const double allowed = 2 * bound_ * kind->second;
  bounds.allowance = [allowed](int64_t) { return allowed; };
  return bounds;
}

}  // namespace penstock::session
