// src/runtime/train_loop.h
//
// Steps of a job on thread ranks: starts the world, gives every rank its state (fresh, or from a checkpoint), runs the
// steps, and calls back between them. What happens with the numbers (metrics, progress, files) is the caller's.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/tensor_source.h"
#include "comm/thread_ranks.h"
#include "comm/traffic.h"
#include "memory/accounting.h"
#include "runtime/checkpoint_saver.h"
#include "runtime/executor.h"
#include "runtime/job.h"
#include "schedule/timeline.h"

namespace penstock::runtime {

// What rank 0 reports after a step.
struct StepReport {
  int64_t step = 0;  // 0-based
  StepResult result;
  int64_t applied_updates = 0;  // after this step
  int64_t samples = 0;
  int64_t valid_tokens = 0;
  double seconds = 0;           // rank 0, from the end of the previous step
  double scale = 1;             // of the loss in this step
  LossScaleState loss_scale{};  // after this step
};

enum class AfterStep { go_on, stop };

struct TrainLoop {
  const Job* job = nullptr;
  const schedule::Schedule* schedule = nullptr;  // its number of ranks is the size of the world
  int64_t first_step = 0;
  int64_t end_step = 0;                            // one past the last
  int64_t applied_updates = 0;                     // before first_step
  std::optional<LossScaleState> loss_scale{};      // before first_step; none: the initial one of the job
  const checkpoint::Checkpoint* resume = nullptr;  // states are read from it when not null
  // Where nothing is resumed: the initial parameters are read from it when not null, by name and shape, in its own
  // element types; optimizer states are fresh.
  const checkpoint::Checkpoint* weights = nullptr;
  // The sizes and samples of a step; called by every rank, from several threads.
  std::function<StepBinding(int64_t step, int64_t applied_updates)> bind;
  comm::ThreadWorldOptions world;
  // Steps [first, first + count) whose events are kept.
  int64_t timeline_first = 0, timeline_count = 0;

  // On rank 0's thread after every step. Non-finite steps come here too (result.applied is false); whether to go on is
  // the caller's decision, and all ranks follow it.
  std::function<AfterStep(const StepReport&)> after_step;
  // Where and how the state is saved (runtime/checkpoint_saver.h), after steps for which `save_after` is true (asked on
  // every rank, must not depend on the rank). A step that ends the run by going wrong did not happen: it is never
  // saved. With `save_at_stop` the state before it is, unless it was saved. The last save of a run is waited for.
  std::optional<SaverOptions> saving;
  std::function<bool(int64_t step)> save_after;
  bool save_at_stop = false;
  // Asked on rank 0 after every step; true ends the run there, with `save_at_stop` after saving. Empty: nobody asks.
  std::function<bool()> interrupted;
  // After steps for which `evaluate_after` is true (asked on every rank, must not depend on the rank) and that were
  // applied, every rank is called with all parameters, indexed like the spec: read-only, valid for the call, and shared
  // between the ranks, which are threads of one process. Rank 0's `after_step` comes when all are through; the time
  // does not count as the step's.
  std::function<bool(int64_t step)> evaluate_after;
  std::function<void(int rank, int ranks, const std::vector<at::Tensor>& parameters)> evaluate;
  // Rank 0: everything of the checkpoint but tensors.
  std::function<checkpoint::TrainState(const StepReport&)> state_after;
  // Rank 0, between steps: a checkpoint is complete and published.
  std::function<void(const std::string& path)> published;
  // After the last step one more is computed and not applied, for the check of the last checkpoint
  // (checkpoint/next_step.h). Where the schedule has no check, or somebody interrupted, it is left out.
  bool check_last_save = false;
};

struct TrainOutcome {
  int64_t steps = 0;  // run
  StepReport last;
  schedule::Timeline timeline;
  std::vector<std::vector<LayerSample>> layer_samples;  // [rank], of the steps whose events are kept
  std::vector<memory::Usage> usage;                     // [rank], peaks over the whole run
  std::vector<comm::TrafficCounters> traffic;           // [rank]
  checkpoint::NamedTensors parameters;                  // the final ones, when `keep_state`
  checkpoint::NamedTensors optimizer;
};

TrainOutcome RunTrainLoop(const TrainLoop& loop, bool keep_state = false);

// Names and shapes of all parameters, and of all optimizer states ("adamw.m/embed.weight").
std::vector<checkpoint::TensorSpec> ModelTensors(const Job& job);
std::vector<checkpoint::TensorSpec> OptimizerTensors(const Job& job);

}  // namespace penstock::runtime
