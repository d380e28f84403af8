// tests/runtime/small_job.h
//
// A tiny GPT as a job with its schedule, built from the parts below the session.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>

#include <memory>
#include <string>
#include <vector>

#include "model/family.h"
#include "model/units.h"
#include "runtime/job.h"
#include "runtime/train_loop.h"
#include "schedule/lower.h"

namespace penstock::runtime {

struct SmallJob {
  Job job;
  schedule::Schedule schedule;
  int micro_batches = 0;

  TrainLoop Loop(int64_t steps) const {
    TrainLoop loop;
    loop.job = &job;
    loop.schedule = &schedule;
    loop.end_step = steps;
    loop.world.deadline = std::chrono::seconds(60);
    loop.bind = [this](int64_t step, int64_t applied) { return Bind(step, applied); };
    return loop;
  }
  // Two samples of eight tokens in each micro-batch, from a linear congruence of (step, micro-batch, position).
  StepBinding Bind(int64_t step, int64_t applied) const {
    StepBinding binding;
    binding.step = step;
    binding.applied_updates = applied;
    binding.micro_batches.assign(micro_batches, {2, 8, 16});
    binding.valid_tokens = 16 * micro_batches;
    binding.materialize = [step](int j) {
      nn::MicroBatchInputs inputs;
      inputs.index = j;
      inputs.sample_ids = {2 * j, 2 * j + 1};
      inputs.tokens = at::full({2, 8}, 0, at::kLong);
      inputs.labels = at::full({2, 8}, 0, at::kLong);
      uint64_t x = static_cast<uint64_t>(step) * 977 + static_cast<uint64_t>(j) * 31 + 7;
      for (int i = 0; i < 16; ++i) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        inputs.tokens.data_ptr<int64_t>()[i] = static_cast<int64_t>(x >> 40) % 23;
        inputs.labels.data_ptr<int64_t>()[i] = static_cast<int64_t>(x >> 20) % 23;
      }
      return inputs;
    };
    return binding;
  }
};

struct SmallLayout {
  std::string builder = "1f1b";
  int data = 1, pipeline = 1, chunks = 1, micro_batches = 4;
  bool recompute = false, tied = true;
};

inline std::unique_ptr<SmallJob> MakeSmallJob(const SmallLayout& layout) {
  auto small = std::make_unique<SmallJob>();
  model::ModelConfig config;
  config.gpt.layers = 2;
  config.gpt.hidden = 16;
  config.gpt.heads = 2;
  config.gpt.vocabulary = 23;
  config.gpt.context = 8;
  config.gpt.tied = layout.tied;
  config.gpt.dropout = 0.1;
  Job& job = small->job;
  job.spec = model::BuildModel(config);
  const int stages = layout.pipeline * layout.chunks;
  job.partition = model::PartitionEven(job.spec, stages);
  job.units = model::MakeUnits(job.spec, job.partition);
  job.reproducible = true;
  job.optimizer.clip = 0.5;
  job.total_updates = 10;
  small->micro_batches = layout.micro_batches;

  schedule::LowerSpec spec;
  spec.data = layout.data;
  spec.pipeline = layout.pipeline;
  spec.chunks = layout.chunks;
  spec.micro_batches = layout.micro_batches;
  spec.recompute.assign(stages, layout.recompute);
  for (size_t u = stages; u < job.units.size(); ++u) {
    std::vector<uint16_t> uses;
    for (const model::UnitUse& use : job.units[u].uses) uses.push_back(static_cast<uint16_t>(use.stage));
    spec.shared_parameters.push_back(uses);
  }
  for (int s = 0; s < stages; ++s) spec.stage_has_parameters.push_back(!job.units[s].uses.empty());
  small->schedule = schedule::Lower(Registry<schedule::Builder>::Find(layout.builder), spec);
  return small;
}

}  // namespace penstock::runtime
