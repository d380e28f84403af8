// src/runtime/buffers.h
//
// The buffers of one rank, by the names the schedule's effects use. A buffer may be in flight: its works are waited
// for when an action touches it, and `on_ready` then finishes it.
// Threads: one rank thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "comm/communicator.h"
#include "nn/deferred.h"
#include "optim/partial_sums.h"
#include "schedule/effects.h"

namespace penstock::runtime {

// A parameter alias that one micro-batch's graph used.
struct Alias {
  int layer = 0;
  int parameter = 0;  // index into ModelSpec::parameters
  at::Tensor tensor;
};

// What a stage keeps from forward to backward.
struct SavedStage {
  std::vector<at::Tensor> inputs;   // leaves
  std::vector<Alias> aliases;       // leaves
  std::vector<at::Tensor> outputs;  // roots
  bool empty = false;               // micro-batch without samples: nothing was computed
};

// What backward_input leaves for backward_weight.
struct WeightStash {
  nn::DeferredGrads deferred;
  std::vector<Alias> waiting;  // aliases whose gradient is in `deferred`
};

struct Buffer {
  std::vector<at::Tensor> tensors;
  std::unique_ptr<SavedStage> saved;
  std::unique_ptr<WeightStash> stash;
  std::vector<optim::PartialSums> sums;  // gradients: one per parameter of the unit
  std::vector<double> numbers;           // statistics
  std::vector<comm::WorkPtr> works;
  std::function<void(Buffer&)> on_ready;
};

class BufferStore {
 public:
  // InternalError when it does not exist (the schedule was not verified, or a handler broke its effects).
  Buffer& At(const schedule::BufferId& id);
  Buffer* Find(const schedule::BufferId& id);
  Buffer& Allocate(const schedule::BufferId& id);  // must not exist
  Buffer& Obtain(const schedule::BufferId& id);    // created when missing
  void Free(const schedule::BufferId& id);
  // Blocks until nothing is in flight in the buffer; no-op when it does not exist.
  void WaitFor(const schedule::BufferId& id);
  void WaitForAll();
  // Frees what lives until the end of the step; InternalError names what leaked.
  void EndStep();

 private:
  static void Settle(Buffer& buffer);
  std::unordered_map<schedule::BufferId, Buffer> buffers_;
};

}  // namespace penstock::runtime
