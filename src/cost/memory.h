// src/cost/memory.h
//
// How much memory a plan needs, before it runs: the rank's list is replayed in program order with the effects of
// schedule/effects.h and sizes from the model. Every rank has a peak of its own (uneven stages are not averaged), split
// by buffer class as the counting allocator splits the measured one.
//
// What a size is:
//   parameter, optimizer_state  whole, of every unit that the rank holds
//   activation                  SavedBytes of the stage's layers from forward to backward; with recomputation its
//   inputs
//                               until recompute; after a split backward the operands of the deferred products
//   gradient                    the partial sums of each use, replayed exactly: the nodes of the tree over
//   micro-batches
//                               in reproducible mode, one running sum otherwise. Inside a backward the leaves of the
//                               layers that are through, while the saved tensors of the others are still there
//   boundary                    from the producer to the send, and from the receive to the consumer
//   message                     one boundary per channel: sender and receiver release what they share at different
//   times workspace                   tensors that live inside one layer, an estimate (WorkspaceBytes)
// All of it is what tensors ask for. Beyond it: blocks that the allocator keeps (RankMemory::cached) and the process.
// Sizes are upper bounds: every micro-batch is counted full.
// Threads: functions only. Errors: InternalError when the schedule does not fit the model.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer_class.h"
#include "cost/arithmetic.h"
#include "model/activation_bytes.h"
#include "model/partition.h"
#include "model/precision.h"
#include "model/spec.h"
#include "model/units.h"
#include "schedule/schedule.h"

namespace penstock::cost {

using BytesByClass = std::array<int64_t, kBufferClassCount>;

// A training stack of the field on devices of their own: mixed precision, activations tensor by tensor
// (model/activation_bytes.h), gradients as one running sum, nothing for workspaces and the process.
struct StackMemory {
  Arithmetic arithmetic;
  model::ActivationLayout layout;  // recompute: none or selective; full recomputation is the schedule's
};

struct MemoryRequest {
  const model::ModelSpec& spec;
  const model::Partition& partition;
  const std::vector<model::ModelUnit>& units;  // same order as schedule.holders.units
  const schedule::Schedule& schedule;          // lowered: with messages and updates
  int64_t samples = 1;                         // of a micro-batch
  int64_t length = 1;                          // tokens of a sample
  model::Precision precision = model::Precision::fp32;
  int optimizer_states = 0;   // values per parameter that the optimizer keeps
  bool reproducible = false;  // partial sums by the canonical tree
  bool checkpoints = false;   // states are read: a copy per tensor
  int64_t snapshot = 0;       // bytes that a rank may copy of its state, to be written while it goes on
  bool final_state = false;   // rank 0 collects parameters and optimizer state at the end
  // On another stack than this project's runtime, and what it keeps there; else `precision` says what the runtime
  // keeps.
  std::optional<StackMemory> stack{};
  // Kept for every action, for memory over time.
  bool trace = false;
};

struct RankMemory {
  int64_t step = 0;              // peak inside a step, all classes and the workspace at that moment
  BytesByClass at_peak{};        // what `step` is made of
  int64_t workspace = 0;         // also in it
  schedule::ActionRef peak_at;   // the action during which it is reached
  BytesByClass peak_by_class{};  // each class at its own peak
  int64_t persistent = 0;        // parameters and optimizer state
  int64_t load_copy = 0;         // while a checkpoint is read: a copy of one tensor beside `persistent`
  int64_t snapshot = 0;          // beside `step`, while a checkpoint is written: the rank's part of the state, or less
  int64_t final_state = 0;       // rank 0 at the end, beside `persistent`
  // With MemoryRequest::trace, [action]: what is alive after it, and the most that is while it runs, all together.
  struct Moment {
    BytesByClass after{};
    int64_t peak = 0;
  };
  std::vector<Moment> trace;
  BytesByClass before{};  // alive before the first action
  int64_t cached = 0;     // blocks kept and rounded up by the allocator, beside the peak

  // The largest of step, loading and end: what the counting allocator should see at most.
  int64_t peak() const;
  int64_t total() const { return peak() + cached; }
  // The largest class of `at_peak`, or "workspace".
  std::string LargestPart() const;
};

struct MemoryEstimate {
  std::vector<RankMemory> ranks;
  int64_t process = 0;  // libtorch itself: code, thread pools, tables; once per process
  // All ranks are threads of one process on one machine. Copies of a checkpoint and cached blocks of every rank count.
  int64_t machine() const;
  int largest_rank() const;
};

MemoryEstimate EstimateMemory(const MemoryRequest& request);

// Tensors that exist only while one layer computes, forward or backward, whichever has more: an estimate from the
// widest matrix of the layer and the hidden size, see memory.cc.
int64_t WorkspaceBytes(const model::ModelSpec& spec, int layer, int64_t samples, int64_t length,
                       model::Precision precision);

// What backward_input leaves for backward_weight: the operands of the deferred products and the gradients of their
// outputs.
int64_t StashBytes(const model::ModelSpec& spec, int layer, int64_t samples, int64_t length,
                   model::Precision precision);

}  // namespace penstock::cost
