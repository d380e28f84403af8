// src/data/batches.h
//
// The binding of a step (design: bind): which samples are in which micro-batch, their sizes and the number of valid
// tokens, the same on every rank; and the token arrays of the micro-batches a rank asks for.
//
// A step has `batch` samples in G ordered micro-batches 0..G-1. Samples are spread in order and as evenly as can be,
// the larger ones first (8 samples over 3: 3, 3, 2; 2 over 3: 1, 1, 0 - an empty micro-batch). A micro-batch is padded
// to its own longest sample. The loss of a step is its sum over valid tokens divided by StepBatches::valid_tokens,
// never a mean of means.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace penstock::data {

// What the last batch of an epoch is when the batch does not divide the data.
//   kWrap    it is filled from the next epoch; every step has `batch` samples
//   kDrop    the samples that do not fill it are left out of this epoch
//   kRagged  it is short; its samples are spread over the same number of micro-batches (some may be empty)
enum class LastBatch { kWrap, kDrop, kRagged };

struct BatchOptions {
  int64_t batch = 1;
  // One of the two: samples of a micro-batch at most (G = ceil(batch / micro_batch)), or G itself.
  int64_t micro_batch = 0;
  int32_t micro_batches = 0;
  bool allow_ragged = false;  // micro-batches of unequal size
  LastBatch last_batch = LastBatch::kWrap;
  bool shuffle = true;
  uint64_t seed = 0;
  int32_t pad_token = 0;
};

// G of the options. UserError when the batch does not divide into equal micro-batches and ragged ones are not allowed:
// names the sizes that work.
int32_t CountMicroBatches(const BatchOptions& options);

struct MicroBatchShape {
  int32_t index = 0;
  int64_t first_slot = 0;  // slot of its first sample in the step's batch; dropout is keyed by slot
  int64_t samples = 0;     // B, may be 0
  int64_t length = 0;      // T, the longest sample; 0 when there is none
  int64_t valid_tokens = 0;
};

struct StepBatches {
  int64_t step = 0;
  int64_t epoch = 0;  // of the first sample
  std::vector<MicroBatchShape> micro_batches;
  int64_t samples = 0;
  int64_t valid_tokens = 0;   // N of the loss
  int64_t padded_tokens = 0;  // sum of B * T
};

struct MicroBatch : MicroBatchShape {
  std::vector<int64_t> sample_ids;  // [B], epoch * dataset size + index in the dataset: unique in a run
  std::vector<int64_t> lengths;     // [B]
  std::vector<int32_t> tokens;      // [B, T], row-major, padded with pad_token
  std::vector<int32_t> labels;      // [B, T], kIgnoredLabel where padded
};

// Immutable after construction; any thread.
class Batches {
 public:
  // UserError as CountMicroBatches; also when kDrop leaves nothing of the data. Endless data has no last batch: kWrap.
  Batches(std::shared_ptr<const Dataset> dataset, const BatchOptions& options);

  int32_t micro_batches() const { return micro_batches_; }
  // Steps that take one epoch; with kWrap the first of them that reaches its end, rounded up.
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  const Dataset& dataset() const { return *dataset_; }
  const BatchOptions& options() const { return options_; }

  // The sample in `slot` of `step`: epoch * size + index; of endless data its place in the run. 0 <= slot < samples of
  // the step.
  int64_t SampleId(int64_t step, int64_t slot) const;
  // Costs O(batch), builds no token. step >= 0. UserError when the step has no valid token at all.
  StepBatches MakeStep(int64_t step) const;
  // Micro-batch j of the step with its tokens.
  MicroBatch Materialize(int64_t step, int32_t j) const;
  MicroBatch Materialize(const StepBatches& step, int32_t j) const;

 private:
  int64_t SamplesOf(int64_t step) const;
  int64_t IndexOf(int64_t id) const { return dataset_->endless() ? id : id % dataset_->size(); }  // in the dataset

  std::shared_ptr<const Dataset> dataset_;
  BatchOptions options_;
  int32_t micro_batches_;
  int64_t steps_per_epoch_;
};

}  // namespace penstock::data
