// src/session/run/open_model.h
//
// A trained model for use: weights, tokenizer and configuration of a checkpoint.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/tensor_source.h"
#include "model/precision.h"
#include "model/spec.h"
#include "session/settings.h"
#include "tokenizer/tokenizer.h"

namespace penstock::session {

// Not movable: LoadedSettings.
struct OpenedModel {
  std::unique_ptr<const checkpoint::Checkpoint> from;  // what was read
  std::string checkpoint;                              // its folder
  int64_t step = 0;
  LoadedSettings settings;  // of the run that wrote it
  data::DataConfig data;    // the same, where the run found it
  model::ModelSpec spec;
  model::Precision precision = model::Precision::fp32;
  checkpoint::NamedTensors parameters;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  // see OpenModelOptions::text
  std::string data_fingerprint;                           // of the training data; empty when not recorded
};

struct OpenModelOptions {
  std::string from{};       // a checkpoint, a directory of checkpoints, or a run directory
  std::string tokenizer{};  // instead of the run's; empty: the run's
  bool weights = true;      // false: `parameters` stays empty
  bool text = true;         // false: `tokenizer` may be null, where the weights came without one
  int64_t threads = 0;      // of one operation; 0: all cores for models that give them work, else 1
};

// Prepares the process too: call it first. UserError when there is no valid checkpoint, or the tokenizer does not fit.
std::unique_ptr<OpenedModel> OpenModel(const OpenModelOptions& options);

}  // namespace penstock::session
