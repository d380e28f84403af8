#include "session/run/train_command.h"

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "base/utf8_stream.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/directory.h"
#include "checkpoint/loss_scale_record.h"
#include "checkpoint/next_step.h"
#include "report/metrics_log.h"
#include "report/progress.h"
#include "report/run_files.h"
#include "report/run_report.h"
#include "report/svg.h"
#include "report/timeline_io.h"
#include "runtime/environment.h"
#include "runtime/train_loop.h"
#include "schedule/text.h"
#include "session/html_report.h"
#include "session/prediction.h"
#include "session/profile_file.h"
#include "session/run/convert_command.h"
#include "session/run/evaluate.h"
#include "session/run/find_tokenizer.h"
#include "session/run/interrupt.h"
#include "session/run/measured_profile.h"
#include "session/run/prepare.h"
#include "session/run/run_directory.h"
#include "session/run/run_readme.h"
#include "session/run/sample.h"
#include "session/run/start_weights.h"

namespace penstock::session {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Largest relative difference between the first step and what it was in the run that saved, where layouts may sum in
// another order. A state that is wrong is off by far more.
double FirstStepTolerance(const std::string& precision) {
  if (precision == "fp64") return 1e-9;
  return precision == "fp32" ? 1e-3 : 3e-2;
}

report::StepMetrics ToMetrics(const runtime::StepReport& report, int ranks, bool scaled) {
  report::StepMetrics m;
  m.step = report.step + 1;
  m.loss = report.result.verdict.loss;
  if (report.result.checked) m.grad_norm = report.result.verdict.norm;
  m.learning_rate = report.result.learning_rate;
  m.tokens = report.valid_tokens;
  m.seconds = report.seconds;
  m.tokens_per_second = report.seconds > 0 ? static_cast<double>(report.valid_tokens) / report.seconds : 0;
  m.applied = report.result.applied;
  if (scaled) m.loss_scale = report.scale;
  for (int r = 0; r < ranks; ++r) m.peak_bytes.push_back(memory::UsageOf(r).peak);
  return m;
}

class TrainRun {
 public:
  TrainRun(const TrainOptions& options, std::ostream& out, std::ostream& log)
      : out_(out),
        log_(log),
        json_(options.json),
        settings_(options.config, options.assignments),
        run_(Prepare(settings_)) {
    if (options.change_job) options.change_job(run_->job);
  }

  int Go() {
    directory_ = InspectRunDirectory(settings_, ModelFingerprint(run_->job.spec));
    if (directory_.start == RunStart::complete) return AlreadyComplete();
    prediction_ = Predict(settings_, run_->plan, ThisMachine());
    OpenCheckpoint();  // before anything is written: whatever is wrong with it must leave the directory as it is
    evaluation_ = MakeEvaluation();
    OpenRunDirectory(directory_, settings_);
    WriteReadmeAndTokenizer();
    PrintHead();
    WriteFileAtomically(directory_.path + "/" + std::string(report::kScheduleFile),
                        schedule::PrintSchedule(run_->plan.schedule), true);
    WriteFileAtomically(InDirectory(report::kPlanFile), PlanJson(prediction_, run_->plan, directory_.first_step), true);
    PrintPrediction();
    Train();
    WriteTimelines();
    PrintEnd();
    if (!failure_.empty()) throw WorldError(failure_);
    return signal_ == 0 ? 0 : 128 + signal_;  // as a shell says it
  }

 private:
  const Settings& s() const { return settings_.values; }
  std::string InDirectory(std::string_view name) const { return directory_.path + "/" + std::string(name); }

  void WriteReadmeAndTokenizer() {
    const tokenizer::Tokenizer* tokenizer = run_->text.tokenizer.get();
    if (tokenizer != nullptr) WriteTokenizer(directory_.path, *tokenizer);
    WriteFileAtomically(InDirectory(kRunReadme),
                        RunReadme(settings_, directory_.path, std::filesystem::current_path().string(),
                                  tokenizer != nullptr && !tokenizer->files().empty()),
                        true);
  }

  void PrintPrediction() {
    log_ << fmt::format(
                "predicted: {} per step, bubble {:.1f} %{}\n", FormatSeconds(prediction_.step_seconds),
                100 * prediction_.simulation.bubble_fraction,
                prediction_.calibrated ? "" : " (uncalibrated: `penstock doctor --calibrate` measures this machine)")
         << std::flush;
  }

  int AlreadyComplete() {
    if (!directory_.start_checkpoint.empty())
      throw UserError("checkpoint.resume: '{}' is at step {} already, past train.steps = {}; raise train.steps",
                      directory_.checkpoint, directory_.first_step, s().train.steps);
    log_ << fmt::format(
        "the run in '{}' is complete: its newest checkpoint is at step {} and train.steps is {}; raise train.steps to "
        "go "
        "on, or --set run.overwrite=true to start anew\n",
        directory_.path, directory_.first_step, s().train.steps);
    if (json_) out_ << nlohmann::json{{"run_dir", directory_.path}, {"complete", true}}.dump() << "\n";
    return 0;
  }

  // A cosine that ends at the end of the run is another one when the run gets longer.
  void NoteOtherLength(const checkpoint::TrainState& state) {
    const auto former = state.extra.find("session.steps");
    if (former != state.extra.end() && former->second != std::to_string(s().train.steps))
      log_ << fmt::format(
          "note: train.steps was {}; the cosine now ends at {}, so the learning rate jumps (optimizer.decay_steps "
          "fixes "
          "its end)\n",
          former->second, s().train.steps);
  }

  // A run may start from another one's checkpoint on purpose; what it does otherwise is said.
  void NoteOtherComputation(const checkpoint::TrainState& state) {
    const auto former = state.extra.find("session.computation");
    if (directory_.start_checkpoint.empty() || former == state.extra.end()) return;
    for (const std::string& difference : Differences(ComputationOf(settings_), former->second))
      log_ << fmt::format("note: '{}' is of another computation: {}\n", directory_.checkpoint, difference);
    if (runtime::OptimizerTensors(run_->job).empty() && !from_->optimizer().empty())
      log_ << fmt::format("note: the optimizer state of '{}' is not used: optimizer '{}' keeps none\n",
                          directory_.checkpoint, s().optimizer.name);
  }

  void OpenCheckpoint() {
    if (!s().checkpoint.weights.empty() && s().checkpoint.resume != "auto" && s().checkpoint.resume != "never")
      throw UserError("checkpoint.weights and checkpoint.resume = '{}' both say where the run starts; set one",
                      s().checkpoint.resume);
    if (directory_.checkpoint.empty()) {
      run_->weights = OpenStartWeights(settings_, *run_);
      return;
    }
    from_ = std::make_unique<checkpoint::Checkpoint>(directory_.checkpoint);
    from_->RequireModel(ModelFingerprint(run_->job.spec));
    if (!directory_.start_checkpoint.empty()) RequireSameFunction(settings_, *from_, "checkpoint.resume");
    CheckEnvironment(from_->state());
    if (run_->job.loss_scale.enabled) saved_scale_ = SavedLossScale();
    const auto require = [&](const std::map<std::string, checkpoint::StoredTensor>& tensors,
                             const checkpoint::TensorSpec& spec) {
      const auto at = tensors.find(spec.name);
      if (at == tensors.end())
        throw UserError("checkpoint '{}' has no tensor '{}': it was written with another optimizer; use that one",
                        directory_.checkpoint, spec.name);
      if (at->second.spec.dtype != spec.dtype)
        throw UserError(
            "checkpoint '{}': '{}' has another element type; use the numerics.precision it was written with",
            directory_.checkpoint, spec.name);
    };
    for (const checkpoint::TensorSpec& spec : runtime::ModelTensors(run_->job)) require(from_->model(), spec);
    for (const checkpoint::TensorSpec& spec : runtime::OptimizerTensors(run_->job)) require(from_->optimizer(), spec);
    // Of this run; another one that starts from the checkpoint reads other samples.
    if (s().checkpoint.self_check && directory_.start_checkpoint.empty())
      expected_first_ = checkpoint::ReadNextStep(directory_.checkpoint);
    if (expected_first_ && expected_first_->step != from_->state().step) {
      log_ << fmt::format("note: {} in '{}' is of the step after {}; the first step is not checked\n",
                          checkpoint::kNextStepFile, directory_.checkpoint, expected_first_->step);
      expected_first_.reset();
    }
  }

  // Case D1: whatever went wrong between the save and here shows in the first step, before anything is saved.
  void CheckFirstStep(const runtime::StepReport& step) {
    if (!expected_first_ || step.step != expected_first_->step) return;
    const bool same_bits = s().numerics.reproducible && expected_first_->environment == from_->state().environment;
    const auto norm =
        step.result.checked && step.result.applied ? std::optional<double>(step.result.verdict.norm) : std::nullopt;
    std::string wrong = checkpoint::HoldAgainst(*expected_first_, step.result.verdict.loss, norm,
                                                same_bits ? 0 : FirstStepTolerance(s().numerics.precision));
    // It was applied there: what is recorded is finite. A scaled gradient at the edge of fp16 may be rounded past it.
    if (wrong.empty() && !step.result.applied && (same_bits || !run_->job.loss_scale.enabled))
      wrong = "values that are not finite";
    if (!wrong.empty())
      throw WorldError(
          fmt::format("the first step after loading '{}' has {}: the state is not the one that was saved, or this "
                      "program computes something else. Nothing was saved since; checkpoint.self_check = false goes on "
                      "all the same",
                      directory_.checkpoint, wrong));
    log_ << (same_bits ? "the first step has the bits it had where the checkpoint was written\n"
                       : "the first step is what it was where the checkpoint was written, up to rounding\n");
  }

  void PrintHead() {
    const data::TextData& text = run_->text;
    log_ << run_->plan.explanation;
    log_ << fmt::format("model: {} with {} parameters, {}\n", run_->job.spec.family,
                        FormatCount(run_->job.spec.parameter_count()), s().numerics.precision);
    log_ << fmt::format(
        "data: {} documents, {}, {} training windows of {} tokens; unigram entropy {:.4f} nats per token\n",
        text.documents, FormatBytes(text.bytes), text.train->size(), s().data.sequence, text.unigram_entropy);
    log_ << fmt::format("numerics: {}{}\n", s().numerics.reproducible ? "reproducible, " : "",
                        runtime::DescribeEnvironment(static_cast<int>(s().runtime.intra_op_threads)).Fingerprint());
    for (const std::string& note : directory_.notes) log_ << "note: " << note << "\n";
    const int64_t threads = s().runtime.intra_op_threads * run_->plan.schedule.num_ranks();
    if (const int64_t cores = std::thread::hardware_concurrency(); cores > 0 && threads > cores)
      log_ << fmt::format("note: {} ranks with {} threads each on {} cores; they take turns\n",
                          run_->plan.schedule.num_ranks(), s().runtime.intra_op_threads, cores);
    if (directory_.start == RunStart::resume)
      log_ << fmt::format("resume from '{}' at step {}\n", directory_.checkpoint, directory_.first_step);
    if (run_->weights) log_ << fmt::format("weights of '{}'; everything else starts fresh\n", run_->weights->path());
    if (from_ && run_->job.loss_scale.enabled && !saved_scale_)
      log_ << fmt::format("note: '{}' has no loss scale; it starts at {}\n", directory_.checkpoint,
                          run_->job.loss_scale.initial);
    if (from_ && s().optimizer.schedule == "cosine" && s().optimizer.decay_steps == 0) NoteOtherLength(from_->state());
    if (from_) NoteOtherComputation(from_->state());
    log_ << fmt::format("run directory: {}\n", directory_.path) << std::flush;
  }

  void Train() {
    runtime::TrainLoop loop = MakeLoop(settings_, *run_);
    if (from_) {
      loop.resume = from_.get();
      loop.first_step = from_->state().step;
      loop.applied_updates = from_->state().applied_updates;
      loop.loss_scale = saved_scale_;
    }
    loop.timeline_first = loop.first_step + std::min(s().report.timeline_first, loop.end_step - loop.first_step - 1);
    loop.timeline_count = s().report.timeline_steps;
    const int ranks = run_->plan.schedule.num_ranks();
    report::MetricsLog metrics(directory_.path, loop.first_step + 1,
                               {.csv = s().log.csv, .tensorboard = s().log.tensorboard});
    report::Progress progress(log_, !json_ && report::IsTerminal(1), loop.first_step + 1, loop.end_step);
    if (evaluation_ != nullptr) {
      loop.evaluate_after = [this, &loop](int64_t step) {
        return (step + 1) % s().eval.every == 0 || step + 1 == loop.end_step;
      };
      loop.evaluate = [this](int rank, int size, const std::vector<at::Tensor>& parameters) {
        evaluation_->Share(rank, size, parameters);
      };
    }
    loop.after_step = [&](const runtime::StepReport& step) {
      if (step.step == loop.first_step) {
        first_step_seconds_ = SecondsSince(start_);
        CheckFirstStep(step);
      }
      report::StepMetrics m = ToMetrics(step, ranks, run_->job.loss_scale.enabled);
      if (evaluation_ != nullptr && step.result.applied && loop.evaluate_after(step.step)) {
        m.eval = ToMetrics(evaluation_->Total());
        last_eval_ = m.eval;
      }
      metrics.Write(m);
      progress.Update(m);
      if (step.step >= loop.timeline_first && step.step < loop.timeline_first + loop.timeline_count)
        recorded_seconds_.push_back(step.seconds);
      return AfterStep(step);
    };
    loop.save_after = [this, &loop](int64_t step) {
      return (s().checkpoint.every > 0 && (step + 1) % s().checkpoint.every == 0) ||
             (s().checkpoint.at_end && step + 1 == loop.end_step);
    };
    const Interrupt interrupt;
    loop.interrupted = [&interrupt] { return interrupt.signal() != 0; };
    loop.save_at_stop = s().checkpoint.every > 0 || s().checkpoint.at_end;
    loop.saving.emplace(runtime::SaverOptions{.directory = directory_.checkpoints(),
                                              .save = {.keep_last = s().checkpoint.keep,
                                                       .keep_every = s().checkpoint.keep_every,
                                                       .damaged = directory_.damaged},
                                              .snapshot_bytes = s().checkpoint.snapshot});
    loop.state_after = [this](const runtime::StepReport& step) { return StateAfter(step); };
    loop.published = [this](const std::string& path) { checkpoint_ = path; };
    loop.check_last_save = s().checkpoint.self_check;
    try {
      outcome_ = runtime::RunTrainLoop(loop, /*keep_state=*/s().train.sample_tokens > 0);
    } catch (...) {
      progress.Finish();
      throw;
    }
    progress.Finish();
    signal_ = interrupt.signal();
    if (signal_ != 0 && outcome_.last.step + 1 < loop.end_step && failure_.empty())
      log_ << fmt::format("interrupted: stopped after step {} of {}; {}\n", outcome_.last.step + 1, loop.end_step,
                          !loop.save_at_stop ? "nothing is saved (checkpoint.at_end and checkpoint.every are off)"
                          : !s().run.overwrite && s().checkpoint.resume == "auto"
                              ? "its state is saved, the same command goes on from there"
                              : "its state is saved, the command goes on from there without run.overwrite and "
                                "checkpoint.resume");
    else
      signal_ = 0;
  }

  // Without one only a run that starts from another one's checkpoint may go on.
  std::optional<LossScaleState> SavedLossScale() const {
    std::optional<LossScaleState> scale;
    try {
      scale = checkpoint::GetLossScale(from_->state());
    } catch (const UserError& error) {
      throw UserError("'{}': {}", directory_.checkpoint, error.what());
    }
    if (!scale && directory_.start_checkpoint.empty())
      throw UserError("'{}' does not say what the loss scale was", directory_.checkpoint);
    return scale;
  }

  std::unique_ptr<TrainEvaluation> MakeEvaluation() const {
    if (s().eval.every == 0) return nullptr;
    const data::TextData& text = run_->text;
    if (text.validation == nullptr)
      throw UserError(
          "eval.every = {}: the token files have no validation part; make them with `penstock tokenize --validation "
          "0.01`, or set eval.every = 0",
          s().eval.every);
    return std::make_unique<TrainEvaluation>(run_->job.spec, run_->job.precision, text.validation,
                                             BytesOfTokens(*text.tokenizer), s().eval.batches * s().train.batch,
                                             s().train.micro_batch);
  }

  runtime::AfterStep AfterStep(const runtime::StepReport& step) {
    if (step.result.applied) {
      skipped_in_a_row_ = 0;
      return runtime::AfterStep::go_on;
    }
    ++skipped_in_a_row_;
    ++skipped_;
    const std::string what = fmt::format("step {}: {}", step.step + 1, step.result.verdict.first_fault);
    // A scaled gradient that is too large is no fault: the scale is reduced. But not for ever (case F1).
    if (const LossScaleConfig& config = run_->job.loss_scale; config.enabled && step.result.verdict.loss_finite) {
      if (first_fault_.empty() || step.loss_scale.skipped_in_a_row == 1) first_fault_ = what;
      if (step.loss_scale.skipped_in_a_row < config.max_skipped) return runtime::AfterStep::go_on;
      failure_ = fmt::format(
          "{}; since then {} updates in a row were left out (numerics.loss_scale_max_skipped), the last one with a "
          "loss scale of {}. Lower optimizer.lr{}, or use numerics.precision = 'bf16'",
          first_fault_, step.loss_scale.skipped_in_a_row, step.scale,
          step.scale <= 1            ? ""
          : config.mode == "dynamic" ? " or numerics.loss_scale_min"
                                     : " or numerics.loss_scale_initial");
      return runtime::AfterStep::stop;
    }
    if (s().train.on_nonfinite == "skip" && skipped_in_a_row_ < s().train.max_skipped) return runtime::AfterStep::go_on;
    failure_ =
        s().train.on_nonfinite == "skip"
            ? fmt::format("{}; {} updates in a row were left out (train.max_skipped)", what, skipped_in_a_row_)
            : fmt::format(
                  "{}; all ranks stopped before the update. Lower optimizer.lr, or set train.on_nonfinite = 'skip'",
                  what);
    return runtime::AfterStep::stop;
  }

  checkpoint::TrainState StateAfter(const runtime::StepReport& step) const {
    checkpoint::TrainState state;
    state.step = step.step + 1;
    state.applied_updates = step.applied_updates;
    state.samples_seen = (step.step + 1) * s().train.batch;
    state.seed = static_cast<uint64_t>(s().run.seed);
    state.model_fingerprint = ModelFingerprint(run_->job.spec);
    state.environment = runtime::DescribeEnvironment(static_cast<int>(s().runtime.intra_op_threads)).Fingerprint();
    state.config = settings_.config.ResolvedToml();
    if (run_->job.loss_scale.enabled) checkpoint::PutLossScale(step.loss_scale, state);
    state.extra["session.computation"] = ComputationOf(settings_);
    state.extra["session.steps"] = std::to_string(s().train.steps);
    state.extra["data.fingerprint"] = run_->batches->dataset().Fingerprint();
    if (run_->text.tokenizer != nullptr) state.extra[kTokenizerFingerprint] = run_->text.tokenizer->Fingerprint();
    for (const checkpoint::Checkpoint* from :
         {run_->weights.get(), static_cast<const checkpoint::Checkpoint*>(from_.get())})
      if (from != nullptr)
        for (const auto& [key, value] : from->state().extra)
          if (key.starts_with(kFromHuggingFace)) state.extra[key] = value;
    return state;
  }

  void CheckEnvironment(const checkpoint::TrainState& state) {
    if (run_->text.tokenizer != nullptr)
      RequireTokenizer(state, directory_.checkpoint, *run_->text.tokenizer);  // says it better than the data
    const auto data = state.extra.find("data.fingerprint");
    if (data == state.extra.end())
      throw UserError("'{}' does not say which data it was trained on", directory_.checkpoint);
    const bool own = directory_.start_checkpoint.empty();  // of this run, not one that it starts from
    // Case E2: where the run is in the data is never guessed.
    if (own && state.samples_seen != state.step * s().train.batch)
      throw UserError("'{}' is at sample {} of the data after {} steps of {}: this cannot be", directory_.checkpoint,
                      state.samples_seen, state.step, s().train.batch);
    if (own && data->second != run_->batches->dataset().Fingerprint())
      throw UserError(
          "the data is not what '{}' was trained on (contents or [data] changed); restore it, or choose another "
          "run.dir and "
          "start from the checkpoint with checkpoint.resume",
          directory_.checkpoint);
    const auto computation = state.extra.find("session.computation");
    if (own && computation != state.extra.end())
      if (const std::string other = FirstDifference(ComputationOf(settings_), computation->second); !other.empty())
        throw UserError("'{}' is of another run: {}; move it away, or choose another run.dir", directory_.checkpoint,
                        other);
    const std::string now = runtime::DescribeEnvironment(static_cast<int>(s().runtime.intra_op_threads)).Fingerprint();
    if (now == state.environment) return;
    const std::string text = fmt::format("the checkpoint was written with {}; this is {}", state.environment, now);
    if (s().numerics.reproducible)
      throw UserError(
          "{}: the bits would differ. Go on there, or start another run.dir with numerics.reproducible = false and "
          "checkpoint.resume = '{}'",
          text, directory_.checkpoint);
    log_ << "note: " << text << "\n";
  }

  void WriteTimelines() {
    report::SaveTimeline(InDirectory(report::kPredictedTimelineFile), prediction_.simulation.timeline);
    const schedule::Timeline& measured = outcome_.timeline;
    if (!measured.events.empty()) {
      report::SaveTimeline(InDirectory(report::kMeasuredTimelineFile), measured);
      report::SvgOptions svg;
      svg.step = measured.events.front().step;
      WriteFileAtomically(InDirectory(report::kDrawingFile), report::DrawSvg(measured, svg), true);
      WriteFileAtomically(InDirectory(report::kProfileFile),
                          PrintProfile(MeasuredProfile(run_->job, run_->plan, outcome_, recorded_seconds_,
                                                       static_cast<int>(s().runtime.intra_op_threads))),
                          true);
    }
    WriteReportFiles(directory_.path, settings_.path);
  }

  void PrintEnd() {
    const double entropy = run_->text.unigram_entropy;
    const runtime::StepReport& last = outcome_.last;
    nlohmann::ordered_json summary = {{"run_dir", directory_.path},       {"steps", last.step + 1},
                                      {"loss", last.result.verdict.loss}, {"unigram_entropy", entropy},
                                      {"skipped_updates", skipped_},      {"checkpoint", checkpoint_},
                                      {"seconds", SecondsSince(start_)},  {"first_step_seconds", first_step_seconds_}};
    if (run_->job.loss_scale.enabled) summary["loss_scale"] = last.loss_scale.scale;
    for (size_t r = 0; r < outcome_.usage.size(); ++r) {
      summary["peak_bytes"].push_back(outcome_.usage[r].peak);
      summary["predicted_peak_bytes"].push_back(run_->plan.memory.ranks[r].peak());
    }
    log_ << fmt::format("first step after {:.1f} s, {} steps in {:.1f} s\n", first_step_seconds_, outcome_.steps,
                        SecondsSince(start_));
    if (failure_.empty())
      log_ << fmt::format("loss {:.4f} nats per token at step {}, {} the unigram entropy {:.4f}\n",
                          last.result.verdict.loss, last.step + 1,
                          last.result.verdict.loss < entropy ? "below" : "not below", entropy);
    if (run_->job.loss_scale.enabled)
      log_ << fmt::format("loss scale {} after {} updates were left out\n", last.loss_scale.scale,
                          last.loss_scale.skipped);
    if (last_eval_) {
      summary["eval_loss"] = last_eval_->loss;
      log_ << fmt::format(
          "validation loss {:.4f} nats per token{}, accuracy {:.2f} %\n", last_eval_->loss,
          last_eval_->bits_per_byte ? fmt::format(" ({:.4f} bits per byte)", *last_eval_->bits_per_byte) : "",
          100 * last_eval_->accuracy);
    }
    if (!checkpoint_.empty()) log_ << fmt::format("checkpoint: {}\n", checkpoint_);
    if (failure_.empty() && signal_ == 0 && s().train.sample_tokens > 0) {
      TextGenerator generator(run_->job.spec, run_->job.precision, outcome_.parameters, *run_->text.tokenizer);
      const SampleOptions sample{.tokens = s().train.sample_tokens,
                                 .sampling = {.temperature = s().train.sample_temperature},
                                 .seed = run_->job.seed};
      const std::string text = ToValidUtf8(generator.Generate(s().train.sample_prompt, sample).text);
      summary["sample"] = s().train.sample_prompt + text;
      if (!json_) log_ << "--- sample ---\n" << s().train.sample_prompt << text << "\n--------------\n";
    }
    if (json_) {
      out_ << summary.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    } else {
      out_ << report::ReadRun(directory_.path).ToText();
    }
  }

  std::ostream& out_;
  std::ostream& log_;
  const bool json_;
  const Clock::time_point start_ = Clock::now();
  LoadedSettings settings_;
  std::unique_ptr<PreparedRun> run_;
  RunDirectory directory_;
  std::unique_ptr<checkpoint::Checkpoint> from_;  // what the run goes on from
  std::optional<checkpoint::NextStep> expected_first_;
  std::optional<LossScaleState> saved_scale_;
  runtime::TrainOutcome outcome_;
  Prediction prediction_;
  std::vector<double> recorded_seconds_;  // of the steps whose events are kept
  std::string checkpoint_, failure_;
  std::string first_fault_;  // of the updates left out in a row
  double first_step_seconds_ = 0;
  std::unique_ptr<TrainEvaluation> evaluation_;  // none: nothing is evaluated on the way
  std::optional<report::EvalMetrics> last_eval_;
  int64_t skipped_ = 0, skipped_in_a_row_ = 0;
  int signal_ = 0;  // that ended the run early
};

}  // namespace

int RunTrain(const TrainOptions& options, std::ostream& out, std::ostream& log) {
  return TrainRun(options, out, log).Go();
}

}  // namespace penstock::session
