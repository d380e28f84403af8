// src/runtime/executor.h
//
// Runs the list of one rank: a generic interpreter with a handler per kind and per operator, no schedule-specific
// code. Before an action runs, everything in flight in the buffers its effects name is waited for (its hazards);
// messages and collectives are posted, and completed when somebody needs them. With Job::serial each action also waits
// for its own completion, which is the reference semantics; both give the same bits.
//
// Threads: one Executor per rank thread; the Job is shared.
// Errors:  what the communicator throws; InternalError when the schedule does not fit the job.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/registry.h"
#include "base/time_source.h"
#include "comm/communicator.h"
#include "runtime/buffers.h"
#include "runtime/job.h"
#include "runtime/layer_clock.h"
#include "runtime/rank_state.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace penstock::runtime {

// What `check` found; the same on every rank.
struct Verdict {
  bool finite = true;
  double norm = 0;  // of the gradient of the mean loss, before clipping
  float clip_factor = 1.0f;
  double loss = 0;          // mean over the valid tokens of the step
  bool loss_finite = true;  // else it was not a gradient that went wrong first
  std::string first_fault;  // the first non-finite loss or gradient, in words; empty when finite
};

// A leaf with an element that is not finite. Ordered as one rank would come to them: micro-batch after micro-batch,
// each from the last layer to the first.
struct LeafFault {
  int64_t place = 0;  // micro-batch x number of layers + layers behind this one
  int parameter = 0;
  friend auto operator<=>(const LeafFault&, const LeafFault&) = default;
};

struct StepResult {
  bool checked = false;  // the schedule has a check, so `verdict` is meaningful
  Verdict verdict;
  bool applied = false;  // the update ran
  double learning_rate = 0;
  double seconds = 0;  // of this rank, first action to last
};

// Everything a handler may touch.
struct ExecutionContext {
  const Job& job;
  comm::Communicator& communicator;
  RankState& state;
  const schedule::Schedule& schedule;
  const StepBinding& binding;
  BufferStore& buffers;
  const std::vector<comm::Group>& groups;  // [group of the schedule]
  StepResult& result;
  std::vector<std::optional<bool>>& predicates;  // by number; empty until their check has run
  LayerClock& clock;

  // The micro-batch's tensors; made once per step and rank.
  const nn::MicroBatchInputs& Inputs(int micro_batch);
  int num_micro_batches() const { return schedule.num_micro_batches(); }
  std::unordered_map<int, nn::MicroBatchInputs> inputs;
  std::optional<LeafFault> leaf_fault = {};  // the first one of this rank; looked for with Job::loss_scale
};

// Handler of an operator (task, check, collective, copy, send, recv); registered by a file in runtime/ops. Same names
// as schedule::Operator, which a test checks.
struct OperatorHandler {
  static constexpr const char* kRegistryName = "operator handler";
  std::string name;
  void (*run)(ExecutionContext& context, const schedule::Action& action);
};
using RegisterHandler = Register<OperatorHandler>;

// Handlers of the closed kinds (runtime/compute.cc, runtime/update.cc).
void RunForward(ExecutionContext& context, const schedule::Action& action);
void RunRecompute(ExecutionContext& context, const schedule::Action& action);
// `defer`: leave the weight halves in the weight stash.
void RunBackward(ExecutionContext& context, const schedule::Action& action, bool defer);
void RunBackwardWeight(ExecutionContext& context, const schedule::Action& action);
void RunUpdate(ExecutionContext& context, const schedule::Action& action);

// What an executor works with besides the list: emulation (runtime/emulate.h) has its own.
struct ExecutorSeams {
  // Runs an action whose hazards are over; it must make the buffers its effects allocate. Empty: the handlers.
  std::function<void(ExecutionContext& context, const schedule::Action& action,
                     const std::vector<schedule::Effect>& effects)>
      run = {};
  TimeSource* time = &SteadyTime();
  schedule::Provenance provenance = schedule::Provenance::measured;  // of the events
};

class Executor {
 public:
  // `schedule`'s ranks are the communicator's. All arguments must outlive the executor.
  Executor(const Job& job, comm::Communicator& communicator, RankState& state, ExecutorSeams seams = {});

  // What is recorded of a step: events and memory with times since `origin`, and times of layers (TakeLayerSamples).
  struct Record {
    std::vector<schedule::Event> events;
    std::vector<schedule::MemoryEvent> memory;
    std::chrono::steady_clock::time_point origin{};
  };
  // Runs one step. `record` may be null; what happened is appended.
  StepResult RunStep(const schedule::Schedule& schedule, const StepBinding& binding, Record* record = nullptr);
  std::vector<LayerSample> TakeLayerSamples() { return clock_.Take(); }

 private:
  // What is derived once from a schedule.
  struct Prepared {
    std::vector<comm::Group> groups;
    std::vector<std::vector<schedule::Effect>> effects;  // [action]
    // Explicit edges between ranks: one-way signals, over groups of two so that they do not mix with messages.
    std::map<int, std::vector<comm::Group>> signals_after;                       // by action: this rank signals
    std::map<int, std::vector<comm::Group>> waits_before;                        // by action: this rank waits
    std::vector<void (*)(ExecutionContext&, const schedule::Action&)> handlers;  // [operator id]
  };
  const Prepared& Prepare(const schedule::Schedule& schedule);
  void Dispatch(ExecutionContext& context, const Prepared& prepared, const schedule::Action& action);

  const Job& job_;
  comm::Communicator& communicator_;
  RankState& state_;
  const ExecutorSeams seams_;
  BufferStore buffers_;
  LayerClock clock_;
  std::unordered_map<const schedule::Schedule*, Prepared> prepared_;
};

}  // namespace penstock::runtime
