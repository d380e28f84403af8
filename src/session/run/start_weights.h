// src/session/run/start_weights.h
//
// What checkpoint.weights names: the weights that a fresh run starts with.
#pragma once

#include <memory>

#include "checkpoint/checkpoint.h"
#include "session/run/prepare.h"
#include "session/settings.h"

namespace penstock::session {

// Null when the key is empty. UserError when there is no valid checkpoint, or it is of another model, of settings that
// make another function of the same tensors, or of another tokenizer than the run's.
std::shared_ptr<const checkpoint::Checkpoint> OpenStartWeights(const LoadedSettings& settings, const PreparedRun& run);

}  // namespace penstock::session
