#include "session/run/prepare.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "report/progress.h"
#include "runtime/environment.h"

namespace penstock::session {
namespace {

at::Tensor ToTensor(const std::vector<int32_t>& values, int64_t rows, int64_t columns) {
  at::Tensor tensor = at::empty({rows, columns}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

}  // namespace

nn::MicroBatchInputs ToInputs(const data::MicroBatch& batch) {
  nn::MicroBatchInputs inputs;
  inputs.index = batch.index;
  inputs.tokens = ToTensor(batch.tokens, batch.samples, batch.length);
  inputs.labels = ToTensor(batch.labels, batch.samples, batch.length);
  // Dropout is keyed by the sample's place in the global batch.
  for (int64_t i = 0; i < batch.samples; ++i) inputs.sample_ids.push_back(batch.first_slot + i);
  return inputs;
}

runtime::StepBinding BindStep(const data::Batches& batches, int64_t step, int64_t applied_updates) {
  auto shape = std::make_shared<const data::StepBatches>(batches.MakeStep(step));
  runtime::StepBinding binding;
  binding.step = step;
  binding.applied_updates = applied_updates;
  binding.valid_tokens = shape->valid_tokens;
  for (const data::MicroBatchShape& m : shape->micro_batches)
    binding.micro_batches.push_back({m.samples, m.length, m.valid_tokens});
  binding.materialize = [&batches, shape](int j) { return ToInputs(batches.Materialize(*shape, j)); };
  return binding;
}

std::unique_ptr<PreparedRun> Prepare(const LoadedSettings& settings, std::shared_ptr<const data::Dataset> dataset) {
  const Settings& s = settings.values;
  runtime::PrepareProcess(s.numerics.reproducible);
  auto run = std::make_unique<PreparedRun>();
  run->plan = MakePlan(settings, dataset != nullptr, {.trace_memory = true});
  RequireSound(run->plan);
  RequireFits(run->plan, s);
  if (dataset == nullptr) {
    run->text = data::LoadTextData(s.data, static_cast<uint64_t>(s.run.seed),
                                   {.out = &std::cerr, .terminal = report::IsTerminal(2)});
    dataset = run->text.train;
  }
  run->batches = std::make_shared<const data::Batches>(
      dataset, s.data.MakeBatchOptions(s.train.batch, s.train.micro_batch, static_cast<uint64_t>(s.run.seed)));
  runtime::Job& job = run->job;
  job.spec = run->plan.spec;
  job.partition = run->plan.partition;
  job.units = run->plan.units;
  job.precision = model::ParsePrecision(s.numerics.precision);
  job.seed = static_cast<uint64_t>(s.run.seed);
  job.reproducible = s.numerics.reproducible;
  job.serial = s.runtime.serial;
  job.optimizer = s.optimizer;
  job.loss_scale = s.numerics.MakeLossScale();
  job.total_updates = s.train.steps;
  return run;
}

runtime::TrainLoop MakeLoop(const LoadedSettings& settings, const PreparedRun& run) {
  const Settings& s = settings.values;
  runtime::TrainLoop loop;
  loop.job = &run.job;
  loop.schedule = &run.plan.schedule;
  loop.end_step = s.train.steps;
  loop.weights = run.weights.get();
  loop.bind = [&run](int64_t step, int64_t applied) { return BindStep(*run.batches, step, applied); };
  loop.world.deadline = std::chrono::milliseconds(static_cast<int64_t>(s.runtime.deadline * 1000));
  loop.world.intra_op_threads = static_cast<int>(s.runtime.intra_op_threads);
  return loop;
}

std::string ModelFingerprint(const model::ModelSpec& spec) {
  Hasher hasher;
  hasher.Update(spec.family);
  for (const model::ParameterSpec& p : spec.parameters) {
    hasher.Update(p.name);
    for (const int64_t extent : p.shape) hasher.Update(static_cast<uint64_t>(extent));
  }
  return hasher.Digest().Hex();
}

std::string ComputationOf(const LoadedSettings& settings) {
  const nlohmann::ordered_json all = settings.config.Json();
  nlohmann::ordered_json kept;
  for (const char* section : {"model", "data", "optimizer", "numerics"})
    for (const auto& [key, value] : all.at(section).items()) kept[std::string(section) + "." + key] = value;
  for (const char* key : {"steps", "batch", "micro_batch"}) kept[std::string("train.") + key] = all.at("train").at(key);
  kept["run.seed"] = all.at("run").at("seed");
  kept["runtime.intra_op_threads"] = all.at("runtime").at("intra_op_threads");
  return kept.dump();
}

std::vector<std::string> Differences(const std::string& here, const std::string& there) {
  const auto a = nlohmann::ordered_json::parse(here);
  // The record is a flat object. Deeper ones are damage, and writing them back would be recursive.
  bool flat = true;
  const auto bounded = [&flat](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) {
    flat = flat && depth < 4;
    return flat;
  };
  const auto b = nlohmann::ordered_json::parse(there, bounded, /*allow_exceptions=*/false);
  if (!flat || !b.is_object()) return {"its record of the configuration cannot be read"};
  std::vector<std::string> differences;
  for (const auto& [key, value] : a.items()) {
    if (key == "train.steps") continue;
    const auto other = b.find(key);
    if (other == b.end()) {
      // A key that came later: there it was what it is by default.
      static const auto by_default = nlohmann::ordered_json::parse(ComputationOf(LoadedSettings()));
      if (by_default.find(key) != by_default.end() && by_default.at(key) == value) continue;
      differences.push_back(fmt::format("{} is {} here and was not known there", key, value.dump()));
    } else if (*other != value) {
      differences.push_back(fmt::format("{} is {} here and {} there", key, value.dump(), other->dump()));
    }
  }
  return differences;
}

std::string FirstDifference(const std::string& here, const std::string& there) {
  const std::vector<std::string> all = Differences(here, there);
  return all.empty() ? "" : all.front();
}

}  // namespace penstock::session
