// src/checkpoint/next_step.h
//
// next_step.json of a checkpoint: loss and norm of the step after it, as the run that wrote it saw them. Whoever goes
// on from the checkpoint holds the first step against it: a state that was not restored as it was saved shows at once
// (case D1), and before anything new is saved. Written when that step is over; a run that ended before has none.
// Errors: UserError that names the file. Stateless; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"

namespace penstock::checkpoint {

struct NextStep {
  int64_t step = 0;  // 0-based, the checkpoint's TrainState::step
  double loss = 0;
  std::optional<double> norm{};  // of the gradient; none where the schedule has no check
  std::string environment{};     // fingerprint of docs/numerics.md
  friend bool operator==(const NextStep&, const NextStep&) = default;
};

// Into the folder of a published checkpoint; atomic. Nothing is written when the numbers are not finite.
void WriteNextStep(const std::string& checkpoint, const NextStep& next, FileSystem& files = FileSystem::Real());
// None when the file is not there.
std::optional<NextStep> ReadNextStep(const std::string& checkpoint, FileSystem& files = FileSystem::Real());

// What is wrong with a first step that should have been `expected`, in words; empty when nothing is. `tolerance`:
// largest relative difference that is allowed, 0: the same bits.
std::string HoldAgainst(const NextStep& expected, double loss, const std::optional<double>& norm, double tolerance);

}  // namespace penstock::checkpoint
