// src/base/optimizer_config.h
//
// Section [optimizer] of a config file, declared once (docs/config.md is generated from it). In base because the
// planning side reads configurations without libtorch; a test holds the names against the registry of optim.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace penstock::optim {

// Values beside each key are its defaults; bounds and help are in config.cc.
struct OptimizerConfig {
  std::string name = "adamw";
  double lr = 1e-3;
  std::string schedule = "cosine";
  double min_lr = 0.0;
  int64_t warmup = 0;
  int64_t decay_steps = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.0;
  bool nesterov = false;
  double weight_decay = 0.01;
  std::string decay = "matrices";
  double clip = 0.0;
  std::string clip_norm = "l2";

  void Declare(config::Section& s);
};

// Values that an optimizer keeps per parameter, for plans. The optimizers themselves are behind the libtorch line; a
// test holds this against what they say.
int StatesPerParameter(const OptimizerConfig& config);

}  // namespace penstock::optim
