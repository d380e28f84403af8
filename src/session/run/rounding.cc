#include "session/run/rounding.h"

#include <algorithm>
#include <cmath>

#include "optim/optimizer.h"

namespace penstock::session {
namespace {

std::string KindOf(const std::string& state_name) { return state_name.substr(0, state_name.find('/')); }

}  // namespace

RoundingAllowance::RoundingAllowance(const model::ModelSpec& spec, const RecordedRun& a, const RecordedRun& b,
                                     double bound)
    : a_(a), b_(b), bound_(bound) {
  gradient_error_ = bound_ * std::max(a.largest_gradient, b.largest_gradient);
  largest_movement_ = std::max(a.learning_rates, b.learning_rates) *
                      Registry<optim::Optimizer>::Find(a.optimizer_config.name).largest_step;
  for (size_t p = 0; p < spec.parameters.size(); ++p) index_[spec.parameters[p].name] = static_cast<int>(p);
  for (const RecordedRun* run : {&a, &b})
    for (const auto& [name, state] : run->optimizer) {
      if (state.numel() == 0) continue;
      const double largest = state.abs().max().item<double>();
      double& scale = state_scale_[KindOf(name)];
      if (std::isfinite(largest)) scale = std::max(scale, largest);
    }
}

checkpoint::RoundingBounds RoundingAllowance::ForParameter(const std::string& name) const {
  const int p = index_.at(name);
  const double* in_a = a_.sensitivities[p].const_data_ptr<double>();
  const double* in_b = b_.sensitivities[p].const_data_ptr<double>();
  return {.fp64 = bound_, .fp32 = bound_, .half = bound_, .allowance = [this, in_a, in_b](int64_t element) {
            return std::min(gradient_error_ * std::max(in_a[element], in_b[element]), largest_movement_);
          }};
}

checkpoint::RoundingBounds RoundingAllowance::ForState(const std::string& name) const {
  const auto scale = state_scale_.find(KindOf(name));
  // Twice: a state may be quadratic in the gradients.
  const double allowed = scale == state_scale_.end() ? 0.0 : 2 * bound_ * scale->second;
  return {.fp64 = bound_, .fp32 = bound_, .half = bound_, .allowance = [allowed](int64_t) { return allowed; }};
}

}  // namespace penstock::session
