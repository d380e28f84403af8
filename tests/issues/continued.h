// tests/issues/continued.h
//
// A run in parts: steps in one layout, a checkpoint, and the rest in another one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/compare.h"
#include "checkpoint/loss_scale_record.h"
#include "checkpoint/temporary_directory.h"
#include "issues/tiny.h"
#include "runtime/train_loop.h"

namespace penstock::tiny {

struct Trained {
  checkpoint::NamedTensors parameters, optimizer;
  std::vector<double> losses, norms, rates, scales;  // [step of this part]
  std::vector<bool> applied;
  std::vector<std::string> faults;  // of the steps that were left out
  int64_t updates = 0;              // of the whole run
  LossScaleState loss_scale;        // at the end
  // Tokens of the global batch in order of its samples, padded rows one after the other: [step of this part].
  std::vector<std::vector<int64_t>> tokens;
};

struct Part {
  const checkpoint::Checkpoint* from = nullptr;  // else from the start
  int64_t end_step = 0;                          // 0: train.steps
  std::string save_in{};                         // after the last step; empty: nowhere
  std::function<void(runtime::Job& job)> change = {};
};

inline Trained Train(const std::vector<std::string>& assignments, const std::shared_ptr<const data::Dataset>& samples,
                     const Part& part = {}) {
  const auto settings = Settings(assignments);
  const auto run = session::Prepare(*settings, samples);
  if (part.change) part.change(run->job);
  runtime::TrainLoop loop = session::MakeLoop(*settings, *run);
  if (part.end_step > 0) loop.end_step = part.end_step;
  if (part.from != nullptr) {
    loop.resume = part.from;
    loop.first_step = part.from->state().step;
    loop.applied_updates = part.from->state().applied_updates;
    loop.loss_scale = checkpoint::GetLossScale(part.from->state());
  }
  Trained trained;
  trained.tokens.resize(loop.end_step - loop.first_step);
  std::mutex mutex;
  std::map<std::pair<int64_t, int>, std::vector<int64_t>> micro_batches;
  loop.bind = [&, bind = loop.bind](int64_t step, int64_t applied) {
    runtime::StepBinding binding = bind(step, applied);
    binding.materialize = [&, step, materialize = binding.materialize](int m) {
      nn::MicroBatchInputs inputs = materialize(m);
      const int64_t* const first = inputs.tokens.const_data_ptr<int64_t>();
      const std::lock_guard lock(mutex);
      micro_batches[{step, m}] = std::vector<int64_t>(first, first + inputs.tokens.numel());
      return inputs;
    };
    return binding;
  };
  loop.after_step = [&](const runtime::StepReport& report) {
    trained.losses.push_back(report.result.verdict.loss);
    trained.norms.push_back(report.result.verdict.norm);
    trained.rates.push_back(report.result.learning_rate);
    trained.scales.push_back(report.scale);
    trained.applied.push_back(report.result.applied);
    if (!report.result.applied) trained.faults.push_back(report.result.verdict.first_fault);
    trained.updates = report.applied_updates;
    trained.loss_scale = report.loss_scale;
    return runtime::AfterStep::go_on;
  };
  if (!part.save_in.empty()) {
    loop.saving.emplace(runtime::SaverOptions{.directory = part.save_in});
    loop.save_after = [end = loop.end_step](int64_t step) { return step + 1 == end; };
    loop.check_last_save = true;  // the step that is not applied is there as in a real run
    loop.state_after = [](const runtime::StepReport& report) {
      checkpoint::TrainState state{.step = report.step + 1, .applied_updates = report.applied_updates};
      checkpoint::PutLossScale(report.loss_scale, state);
      return state;
    };
  }
  runtime::TrainOutcome outcome = runtime::RunTrainLoop(loop, /*keep_state=*/true);
  trained.parameters = std::move(outcome.parameters);
  trained.optimizer = std::move(outcome.optimizer);
  for (auto& [key, tokens] : micro_batches) {
    if (key.first >= loop.end_step) continue;
    auto& of_step = trained.tokens[key.first - loop.first_step];
    of_step.insert(of_step.end(), tokens.begin(), tokens.end());
  }
  return trained;
}

// Steps up to `saved_after` in the layout `before`, the rest in the layout `after`, whose part is returned.
inline Trained Continued(const std::vector<std::string>& computation, const std::vector<std::string>& before,
                         const std::vector<std::string>& after, int64_t saved_after,
                         const std::shared_ptr<const data::Dataset>& samples) {
  const checkpoint::TemporaryDirectory directory;
  Train(With(computation, before), samples, {.end_step = saved_after, .save_in = directory.path()});
  const checkpoint::Checkpoint from(checkpoint::ResolveCheckpoint(directory.path()));
  EXPECT_EQ(from.state().step, saved_after);
  return Train(With(computation, after), samples, {.from = &from});
}

// `rest` is the end of `straight`, in every bit.
inline void ExpectSameEnd(const Trained& straight, const Trained& rest, const std::string& what = "") {
  const auto end_of = [&](const auto& values) {
    return std::decay_t<decltype(values)>(values.end() - static_cast<ptrdiff_t>(rest.losses.size()), values.end());
  };
  const auto parameters = checkpoint::Compare(straight.parameters, rest.parameters);
  const auto optimizer = checkpoint::Compare(straight.optimizer, rest.optimizer);
  EXPECT_EQ(parameters.verdict, checkpoint::Verdict::equal) << what << "\n" << parameters.ToString();
  EXPECT_EQ(optimizer.verdict, checkpoint::Verdict::equal) << what << "\n" << optimizer.ToString();
  EXPECT_GT(parameters.tensors, 0) << what;
  EXPECT_EQ(end_of(straight.losses), rest.losses) << what;
  const std::vector<double> norms = end_of(straight.norms);  // of a step that is left out it may be no number
  for (size_t i = 0; i < norms.size(); ++i)
    EXPECT_TRUE(norms[i] == rest.norms[i] || (std::isnan(norms[i]) && std::isnan(rest.norms[i]))) << what << " " << i;
  EXPECT_EQ(end_of(straight.rates), rest.rates) << what;
  EXPECT_EQ(end_of(straight.scales), rest.scales) << what;
  EXPECT_EQ(end_of(straight.applied), rest.applied) << what;
  EXPECT_EQ(end_of(straight.tokens), rest.tokens) << what;
  EXPECT_EQ(straight.updates, rest.updates) << what;
  EXPECT_EQ(straight.loss_scale, rest.loss_scale) << what;
}

}  // namespace penstock::tiny
