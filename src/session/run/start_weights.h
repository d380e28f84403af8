// src/session/run/start_weights.h
//
// Weights that a run starts with and that are not its own: those that checkpoint.weights names, or the state that
// checkpoint.resume names.
#pragma once

#include <memory>

#include "checkpoint/checkpoint.h"
#include "session/run/prepare.h"
#include "session/settings.h"

namespace penstock::session {

// Null when the key is empty. UserError when there is no valid checkpoint, or it is of another model, of settings that
// make another function of the same tensors, or of another tokenizer than the run's.
std::shared_ptr<const checkpoint::Checkpoint> OpenStartWeights(const LoadedSettings& settings, const PreparedRun& run);

// UserError, with all differences, when the checkpoint was trained as another function of tensors with the same names
// and shapes (heads, norm epsilon; RoPE unless checkpoint.other_rope). `key`: what named the checkpoint. Case D1.
void RequireSameFunction(const LoadedSettings& settings, const checkpoint::Checkpoint& from, const char* key);

}  // namespace penstock::session
