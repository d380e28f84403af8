// src/model/family.h
//
// Registry of model families, and the [model] section of a configuration.
//   const ModelSpec spec = BuildModel(config);   // UserError for an unknown family or impossible sizes
#pragma once

#include <string>

#include "base/registry.h"
#include "model/gpt.h"
#include "model/spec.h"

namespace penstock::model {

struct ModelConfig {
  std::string family = "gpt2";
  std::string reference{};  // a model of the catalogue (model/catalogue.h) instead; planned and simulated only
  GptConfig gpt{};          // of families gpt2 and llama; gpt.family is overridden by `family`
};

struct ModelFamily {
  static constexpr const char* kRegistryName = "model family";
  std::string name{};
  std::string summary{};
  std::string source{};  // paper
  ModelSpec (*build)(const ModelConfig& config) = nullptr;
};

ModelSpec BuildModel(const ModelConfig& config);

}  // namespace penstock::model
