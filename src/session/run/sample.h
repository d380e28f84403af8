// src/session/run/sample.h
//
// Text from a model: the whole chain on one thread, token after token, each time over the last `context` tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_source.h"
#include "model/precision.h"
#include "model/spec.h"
#include "tokenizer/tokenizer.h"

namespace penstock::session {

struct SampleOptions {
  int64_t tokens = 200;
  double temperature = 0.8;  // 0: the likeliest token
  int64_t top_k = 0;         // 0: all
  uint64_t seed = 1;
};

// The continuation (without the prompt). `emit` (may be empty) sees the text as it grows. UserError for an empty
// prompt. The random numbers are keyed by (seed, "sample") and the position.
std::string Sample(const model::ModelSpec& spec, model::Precision precision, const checkpoint::NamedTensors& parameters,
                   const tokenizer::Tokenizer& tokenizer, std::string_view prompt, const SampleOptions& options,
                   const std::function<void(std::string_view)>& emit = {});

}  // namespace penstock::session
