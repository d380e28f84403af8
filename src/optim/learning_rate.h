// src/optim/learning_rate.h
//
// The learning rate of an update, in fp64 from an integer (docs/numerics.md R10), so that it has the same bits on
// every rank and after every resume.
#pragma once

#include <cstdint>

#include "base/optimizer_config.h"

namespace penstock::optim {

// The rate of the next update when `applied_updates` were applied before it. A step that was skipped (non-finite
// gradient) is not an applied update, so it does not advance the schedule. `total_updates`: where the cosine ends when
// config.decay_steps is 0.
//   k < warmup:  lr (k + 1) / warmup
//   constant:    lr
//   cosine:      min_lr + (lr - min_lr) (1 + cos(pi x)) / 2,  x = (k - warmup) / (end - warmup), min_lr from the end on
double LearningRate(const OptimizerConfig& config, int64_t applied_updates, int64_t total_updates);

}  // namespace penstock::optim
