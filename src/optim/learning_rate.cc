#include "optim/learning_rate.h"

#include <cmath>
#include <numbers>

namespace penstock::optim {

double LearningRate(const OptimizerConfig& config, int64_t applied_updates, int64_t total_updates) {
  const int64_t k = applied_updates;
  if (k < config.warmup) return config.lr * static_cast<double>(k + 1) / static_cast<double>(config.warmup);
  if (config.schedule == "constant") return config.lr;
  const int64_t end = config.decay_steps > 0 ? config.decay_steps : total_updates;
  if (k >= end) return config.min_lr;
  const double x = static_cast<double>(k - config.warmup) / static_cast<double>(end - config.warmup);
  return config.min_lr + 0.5 * (config.lr - config.min_lr) * (1.0 + std::cos(std::numbers::pi * x));
}

}  // namespace penstock::optim
