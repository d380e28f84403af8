// src/checkpoint/loss_scale_record.h
//
// The loss scale of an fp16 run in the manifest of a checkpoint: TrainState::loss_scale, and its counts in
// TrainState::extra ("numerics.loss_scale_clean", "numerics.skipped_in_a_row", "numerics.skipped").
// Errors: UserError that names the missing or impossible entry. Stateless; any thread.
#pragma once

#include <optional>

#include "base/loss_scale.h"
#include "checkpoint/manifest.h"

namespace penstock::checkpoint {

void PutLossScale(const LossScaleState& scale, TrainState& state);
// None when the run that wrote it had none.
std::optional<LossScaleState> GetLossScale(const TrainState& state);

}  // namespace penstock::checkpoint
