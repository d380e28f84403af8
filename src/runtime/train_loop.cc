#include "runtime/train_loop.h"

#include <ATen/ops/full.h>

#include <algorithm>

#include "base/error.h"
#include "base/this_rank.h"
#include "runtime/replicas.h"

namespace penstock::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using checkpoint::TensorSource;
using checkpoint::TensorSpec;

// Tags of what happens between steps: op 0xffff is no operator's id.
constexpr uint64_t kBetweenSteps = uint64_t{0xffff} << 48;

// The lowest rank that holds each parameter.
std::vector<int> FirstHolders(const Job& job, const schedule::Schedule& schedule) {
  std::vector<int> first(job.spec.parameters.size(), -1);
  for (size_t u = 0; u < job.units.size(); ++u)
    for (const int p : job.units[u].parameters) first[p] = schedule.groups[schedule.holders.units[u].group].front();
  return first;
}

// Brings `tensor` of `owner` to rank 0: a collective of those two.
at::Tensor BringToRoot(comm::Communicator& communicator, int owner, uint64_t item, const at::Tensor& tensor) {
  const comm::Tag tag{kBetweenSteps, item};
  if (owner == 0) return tensor;
  // On request: an owner that ran ahead would queue a copy of everything it has.
  if (communicator.rank() == 0) {
    communicator.Send(owner, tag, {});
    return communicator.Recv(owner, tag)->TakeTensors()[0];
  }
  if (communicator.rank() == owner) {
    communicator.Recv(0, tag)->Wait();
    communicator.Send(0, tag, {tensor.clone()});
  }
  return {};
}

// Sources over the ranks' states. fetch must be called for every index in order on every rank.
TensorSource ModelSource(const Job& job, const schedule::Schedule& schedule, comm::Communicator& communicator,
                         RankState& state) {
  const std::vector<int> first = FirstHolders(job, schedule);
  return {ModelTensors(job), [&communicator, &state, first](int i) {
            return BringToRoot(communicator, first[i], static_cast<uint64_t>(i), state.parameter(i));
          }};
}

TensorSource OptimizerSource(const Job& job, const schedule::Schedule& schedule, comm::Communicator& communicator,
                             RankState& state) {
  const std::vector<int> first = FirstHolders(job, schedule);
  const int per = optim::StatesPerParameter(job.optimizer);
  return {OptimizerTensors(job), [&communicator, &state, first, per, &job](int i) {
            const int p = i / per;
            at::Tensor flat;
            if (state.holds(p)) flat = state.optimizer_state(p).tensor(i % per);
            flat = BringToRoot(communicator, first[p], (uint64_t{1} << 32) + static_cast<uint64_t>(i), flat);
            return flat.defined() ? flat.view(job.spec.parameters[p].shape) : flat;
          }};
}

// What the ranks do after a step.
enum class Decision : int64_t { go_on, step_went_wrong, end_here };

// Rank 0's, on all ranks.
Decision Agree(comm::Communicator& communicator, int64_t step, Decision decision) {
  at::Tensor value = at::full({1}, static_cast<int64_t>(decision), at::kLong);
  const comm::Tag tag{kBetweenSteps, (uint64_t{2} << 32) + static_cast<uint64_t>(step)};
  communicator.Broadcast(communicator.world(), tag, 0, value)->Wait();
  return static_cast<Decision>(value.item<int64_t>());
}

std::optional<double> NormOf(const StepResult& result) {
  return result.checked ? std::optional<double>(result.verdict.norm) : std::nullopt;
}

LossScale::Step ScaleStepOf(bool applied, const Verdict& verdict) {
  if (applied) return LossScale::Step::applied;
  return verdict.loss_finite ? LossScale::Step::gradient_not_finite : LossScale::Step::loss_not_finite;
}

bool HasCheck(const schedule::Schedule& schedule) {
  for (const auto& list : schedule.ranks)
    for (const schedule::Action& action : list)
      if (action.key.kind == schedule::Kind::check) return true;
  return false;
}

// One more step, which is not applied: what whoever goes on from the last checkpoint must see first.
// Not a step of the run: the loss scale that it is computed with stays what it is.
void CheckLastSave(const TrainLoop& loop, Executor& executor, CheckpointSaver& saver, int64_t applied, double scale,
                   int rank) {
  StepBinding binding = loop.bind(loop.end_step, applied);
  binding.loss_scale = scale;
  binding.dry = true;
  const StepResult result = executor.RunStep(*loop.schedule, binding, nullptr);
  if (rank == 0 && result.checked && result.verdict.finite)
    saver.AfterStep(loop.end_step, result.verdict.loss, NormOf(result));
}

// `everything` is shared by the ranks; each puts in what it is the first holder of.
void EvaluateTogether(const TrainLoop& loop, comm::Communicator& communicator, RankState& state, int64_t step,
                      std::vector<at::Tensor>& everything) {
  const auto meet = [&](uint64_t kind) {
    communicator.Barrier(communicator.world(), {kBetweenSteps, (kind << 32) + static_cast<uint64_t>(step)})->Wait();
  };
  communicator.SetCurrent("evaluating");
  const std::vector<int> first = FirstHolders(*loop.job, *loop.schedule);
  for (size_t p = 0; p < first.size(); ++p)
    if (first[p] == communicator.rank()) everything[p] = state.parameter(static_cast<int>(p));
  meet(3);  // all is there, and nobody is still updating
  {
    const comm::HostWork work(communicator);
    loop.evaluate(communicator.rank(), communicator.size(), everything);
  }
  meet(4);  // nobody is still reading
}

void LoadState(const Job& job, const checkpoint::Checkpoint& from, RankState& state) {
  const std::vector<TensorSpec> model = ModelTensors(job);
  const int per = optim::StatesPerParameter(job.optimizer);
  const std::vector<TensorSpec> optimizer = OptimizerTensors(job);
  for (size_t p = 0; p < model.size(); ++p) {
    const int index = static_cast<int>(p);
    if (!state.holds(index)) continue;
    state.parameter(index).copy_(from.ReadModel(model[p]));
    for (int i = 0; i < per; ++i)
      state.optimizer_state(index).tensor(i).copy_(from.ReadOptimizer(optimizer[p * per + i]).view({-1}));
  }
}

void LoadWeights(const Job& job, const checkpoint::Checkpoint& from, RankState& state) {
  for (size_t p = 0; p < job.spec.parameters.size(); ++p) {
    const int index = static_cast<int>(p);
    const model::ParameterSpec& parameter = job.spec.parameters[p];
    if (state.holds(index)) state.parameter(index).copy_(from.ReadModel(parameter.name, parameter.shape));
  }
}

}  // namespace

std::vector<TensorSpec> ModelTensors(const Job& job) {
  std::vector<TensorSpec> specs;
  for (const model::ParameterSpec& p : job.spec.parameters)
    specs.push_back({p.name, nn::WideType(job.precision), p.shape});
  return specs;
}

std::vector<TensorSpec> OptimizerTensors(const Job& job) {
  const optim::Optimizer& optimizer = Registry<optim::Optimizer>::Find(job.optimizer.name);
  std::vector<TensorSpec> specs;
  for (const model::ParameterSpec& p : job.spec.parameters)
    for (const std::string& name : optimizer.states(job.optimizer))
      specs.push_back(
          {fmt::format("{}.{}/{}", job.optimizer.name, name, p.name), nn::WideType(job.precision), p.shape});
  return specs;
}

TrainOutcome RunTrainLoop(const TrainLoop& loop, bool keep_state) {
  const Job& job = *loop.job;
  const schedule::Schedule& schedule = *loop.schedule;
  const int ranks = schedule.num_ranks();
  TrainOutcome outcome;
  outcome.usage.resize(ranks);
  outcome.traffic.resize(ranks);
  outcome.timeline.title = "measured";
  outcome.timeline.num_ranks = ranks;
  std::vector<Executor::Record> records(ranks);
  std::vector<at::Tensor> everything(job.spec.parameters.size());  // for evaluations
  outcome.layer_samples.resize(ranks);
  const Clock::time_point origin = Clock::now();
  for (int r = 0; r < ranks; ++r) {
    records[r].origin = origin;
    memory::ResetPeak(r);
  }

  const auto run_rank = [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    communicator.SetCurrent("making the initial state");
    RankState state(job, schedule, rank);
    if (loop.resume != nullptr || loop.weights != nullptr) {
      communicator.SetCurrent("reading the checkpoint");
      const comm::HostWork work(communicator);
      if (loop.resume != nullptr)
        LoadState(job, *loop.resume, state);
      else
        LoadWeights(job, *loop.weights, state);
    }
    if (loop.resume != nullptr || loop.weights != nullptr) RequireEqualReplicas(job, schedule, communicator, state);
    Executor executor(job, communicator, state);
    std::optional<CheckpointSaver> saver;
    if (loop.saving) saver.emplace(job, schedule, communicator, state, *loop.saving);
    const auto tell_published = [&] {
      if (!saver || rank != 0) return;
      for (const std::string& path : saver->TakePublished()) {
        const comm::HostWork work(communicator);
        if (loop.published) loop.published(path);
      }
    };
    int64_t applied = loop.applied_updates;
    LossScale loss_scale = loop.loss_scale ? LossScale(job.loss_scale, *loop.loss_scale) : LossScale(job.loss_scale);
    int64_t saved = -1;  // the last step after which the state was saved
    bool stopped = false;
    Clock::time_point step_start = Clock::now();
    for (int64_t step = loop.first_step; step < loop.end_step; ++step) {
      StepBinding binding = loop.bind(step, applied);
      binding.loss_scale = loss_scale.value();
      const bool record = step >= loop.timeline_first && step < loop.timeline_first + loop.timeline_count;
      StepReport report;
      report.step = step;
      report.result = executor.RunStep(schedule, binding, record ? &records[rank] : nullptr);
      // The verdict is the same on all ranks; a schedule without check always applies.
      const bool applied_now = !report.result.checked || report.result.verdict.finite;
      applied += applied_now ? 1 : 0;
      const LossScaleState scale_before = loss_scale.state();
      loss_scale.After(ScaleStepOf(applied_now, report.result.verdict));
      const Clock::time_point ended = Clock::now();
      if (applied_now && loop.evaluate_after && loop.evaluate_after(step))
        EvaluateTogether(loop, communicator, state, step, everything);
      AfterStep next = AfterStep::go_on;
      if (rank == 0) {
        report.applied_updates = applied;
        report.scale = binding.loss_scale;
        report.loss_scale = loss_scale.state();
        report.result.applied = applied_now;
        report.valid_tokens = binding.valid_tokens;
        for (const MicroBatchSize& size : binding.micro_batches) report.samples += size.samples;
        report.seconds = std::chrono::duration<double>(ended - step_start).count();
        step_start = Clock::now();
        if (loop.after_step) {
          const comm::HostWork work(communicator);  // files and a terminal that may be stopped
          next = loop.after_step(report);
        }
        outcome.last = report;
        outcome.steps = step + 1 - loop.first_step;
      }
      // Everybody follows rank 0, which decides after a step that went wrong and when somebody may interrupt.
      Decision decision = Decision::go_on;
      if (!applied_now || loop.interrupted) {
        if (rank == 0 && loop.interrupted && loop.interrupted()) decision = Decision::end_here;
        if (rank == 0 && !applied_now && next == AfterStep::stop) decision = Decision::step_went_wrong;
        decision = Agree(communicator, step, decision);
      }
      const bool wrong = decision == Decision::step_went_wrong, stop = decision != Decision::go_on;
      if (wrong) {  // the state is that of the step before
        report.step = step - 1;
        report.loss_scale = scale_before;
      }
      const Clock::time_point saving = Clock::now();
      if (saver && rank == 0 && applied_now) saver->AfterStep(step, report.result.verdict.loss, NormOf(report.result));
      const bool due = wrong ? loop.save_at_stop && step > loop.first_step && saved != step - 1
                             : (loop.save_after && loop.save_after(step)) || (stop && loop.save_at_stop);
      if (saver && due) {
        saver->Save(rank == 0 ? loop.state_after(report) : checkpoint::TrainState(),
                    /*wait=*/stop || step + 1 == loop.end_step);
        saved = step;
      }
      if (saver) saver->Poll();
      if (saver) step_start += Clock::now() - saving;  // not part of any step
      tell_published();
      stopped = stop;
      if (stop) break;
    }
    if (saver) {
      saver->Finish();
      tell_published();
      // Every rank knows whether there is a save to check: it is the state after the last step.
      if (loop.check_last_save && !stopped && saved + 1 == loop.end_step && HasCheck(schedule))
        CheckLastSave(loop, executor, *saver, applied, loss_scale.value(), rank);
    }
    if (keep_state) {
      const TensorSource model = ModelSource(job, schedule, communicator, state);
      const TensorSource optimizer = OptimizerSource(job, schedule, communicator, state);
      for (const TensorSource* source : {&model, &optimizer}) {
        auto& into = source == &model ? outcome.parameters : outcome.optimizer;
        for (size_t i = 0; i < source->specs.size(); ++i) {
          const at::Tensor tensor = source->fetch(static_cast<int>(i));
          if (rank == 0) into[source->specs[i].name] = tensor.clone();
        }
      }
    }
    outcome.layer_samples[rank] = executor.TakeLayerSamples();
    outcome.usage[rank] = memory::UsageOf(rank);
    outcome.traffic[rank] = communicator.traffic();
  };
  try {
    comm::RunThreadRanks(ranks, loop.world, run_rank);
  } catch (...) {
    if (loop.saving) checkpoint::RemoveUnfinished(loop.saving->directory, loop.saving->save.files);
    throw;
  }
  for (const Executor::Record& record : records) {
    schedule::Timeline& timeline = outcome.timeline;
    timeline.events.insert(timeline.events.end(), record.events.begin(), record.events.end());
    timeline.memory.insert(timeline.memory.end(), record.memory.begin(), record.memory.end());
  }
  return outcome;
}

}  // namespace penstock::runtime
