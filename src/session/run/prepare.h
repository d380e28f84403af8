// src/session/run/prepare.h
//
// From settings to what ranks need: plan, job, data, and the binding of a step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/batches.h"
#include "data/config.h"
#include "runtime/job.h"
#include "runtime/train_loop.h"
#include "session/plan.h"
#include "session/settings.h"

namespace penstock::session {

// Not movable: the loop's pointers go into it.
struct PreparedRun {
  PreparedRun() = default;
  PreparedRun(const PreparedRun&) = delete;
  PreparedRun& operator=(const PreparedRun&) = delete;

  Plan plan;
  runtime::Job job;
  data::TextData text;  // empty when the dataset was given
  std::shared_ptr<const data::Batches> batches;
  // What a run that resumes nothing starts with; null: initial weights. Prepare leaves it so (start_weights.h).
  std::shared_ptr<const checkpoint::Checkpoint> weights;
};

// `dataset`: instead of the one that [data] names (tests). UserError as MakePlan, LoadTextData; the schedule must be
// sound and fit this machine.
std::unique_ptr<PreparedRun> Prepare(const LoadedSettings& settings,
                                     std::shared_ptr<const data::Dataset> dataset = nullptr);

// Everything but the callbacks. The result points into `run`.
runtime::TrainLoop MakeLoop(const LoadedSettings& settings, const PreparedRun& run);

// The tensors of micro-batch j.
nn::MicroBatchInputs ToInputs(const data::MicroBatch& batch);
runtime::StepBinding BindStep(const data::Batches& batches, int64_t step, int64_t applied_updates);

// Hash of names, shapes and family: checkpoints of another model are refused.
std::string ModelFingerprint(const model::ModelSpec& spec);

// The settings that say what is computed, and nothing about the layout, as JSON text with a key per setting.
std::string ComputationOf(const LoadedSettings& settings);
// "model.layers is 4 here and 6 there" for every key that differs (train.steps may), and for the first of them, empty
// when there is none.
std::vector<std::string> Differences(const std::string& here, const std::string& there);
std::string FirstDifference(const std::string& here, const std::string& there);

}  // namespace penstock::session
