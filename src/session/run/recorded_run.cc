#include "session/run/recorded_run.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/this_rank.h"
#include "optim/optimizer.h"
#include "runtime/oracle.h"
#include "session/run/rounding.h"
#include "session/run/start_weights.h"

namespace penstock::session {
namespace {

Hash128 HashOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor contiguous = tensor.contiguous();
  return Hash(contiguous.const_data_ptr(), contiguous.nbytes());
}

class Recorder final : public runtime::Observer {
 public:
  Recorder(const model::ModelSpec& spec, RecordedRun& run, RecordRounding rounding)
      : spec_(spec), run_(run), rounding_(rounding == RecordRounding::yes) {}
  void Leaf(int64_t step, int micro_batch, int layer, int parameter, const at::Tensor& gradient) override {
    const Hash128 hash = HashOf(gradient);
    const std::lock_guard lock(mutex_);
    run_.leaves[{step, parameter, layer, micro_batch}] = hash;
  }
  void Gradient(int64_t step, int parameter, const at::Tensor& gradient) override {
    const Hash128 hash = HashOf(gradient);
    const double largest = rounding_ && gradient.numel() > 0 ? gradient.abs().max().item<double>() : 0.0;
    const std::lock_guard lock(mutex_);
    largest_[{step, parameter}] = largest;
    const auto [it, fresh] = run_.gradients.try_emplace({step, parameter}, hash);
    // Holders of one parameter must have one gradient, whatever the layout.
    if (!fresh && it->second != hash)
      throw InternalError(
          fmt::format("two holders of parameter {} have different gradients in step {}", parameter, step));
  }
  void Updated(int64_t step, int parameter, const optim::UpdateInput& input,
               const optim::OptimizerState& state) override {
    if (!rounding_) return;
    const std::lock_guard lock(mutex_);
    if (!updated_.insert({step, parameter}).second) return;  // by another holder
    if (steps_.insert(step).second) run_.learning_rates += input.learning_rate;
    const double largest = largest_.at({step, parameter}) * input.gradient_scale;
    RecordedRun::Rounding& rounding = run_.rounding.at(spec_.parameters[parameter].name);
    if (std::isfinite(largest)) rounding.largest_gradient = std::max(rounding.largest_gradient, largest);
    AddSensitivity(input, state, rounding.sensitivity);
  }

 private:
  void AddSensitivity(const optim::UpdateInput& input, const optim::OptimizerState& state, at::Tensor& sum) {
    const optim::Optimizer& optimizer = Registry<optim::Optimizer>::Find(run_.optimizer_config.name);
    std::vector<at::Tensor> states;
    for (int i = 0; i < state.size(); ++i) states.push_back(state.tensor(i).to(at::kDouble));
    double* to = sum.mutable_data_ptr<double>();
    for (int64_t k = 0; k < sum.numel(); ++k) {
      std::array<double, optim::kMaxOptimizerStates> values{};
      for (size_t i = 0; i < states.size(); ++i) values[i] = states[i].const_data_ptr<double>()[k];
      to[k] += input.learning_rate * optimizer.sensitivity(run_.optimizer_config, input.update, values);
    }
  }

  const model::ModelSpec& spec_;
  RecordedRun& run_;
  const bool rounding_;
  std::map<GradientKey, double> largest_;
  std::set<GradientKey> updated_;
  std::set<int64_t> steps_;
  std::mutex mutex_;
};

// The observer leaves with the recording, also when it fails.
class ObserverScope {
 public:
  ObserverScope(runtime::Job& job, runtime::Observer& observer) : job_(job) { job_.observer = &observer; }
  ~ObserverScope() { job_.observer = nullptr; }
  ObserverScope(const ObserverScope&) = delete;
  ObserverScope& operator=(const ObserverScope&) = delete;

 private:
  runtime::Job& job_;
};

bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

double RelativeDifference(double a, double b) {
  if (SameBits(a, b)) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  const double scale = std::max(std::abs(a), std::abs(b));
  return scale == 0 ? 0 : std::abs(a - b) / scale;
}

// Earliest step in which something differs, gradients of micro-batches before sums.
std::string WhereItBegan(const model::ModelSpec& spec, const RecordedRun& a, const RecordedRun& b, bool promised) {
  std::string text;
  int64_t step = std::numeric_limits<int64_t>::max();
  for (const auto& [key, hash] : a.leaves) {
    const auto other = b.leaves.find(key);
    if (other == b.leaves.end() || other->second == hash || key.step >= step) continue;
    step = key.step;
    text = fmt::format("{}: step {}, parameter '{}', use in layer '{}', tree node [{}, {})",
                       promised ? "wrong leaf" : "leaf", key.step + 1, spec.parameters[key.parameter].name,
                       spec.layers[key.layer].path, key.micro_batch, key.micro_batch + 1);
  }
  for (const auto& [key, hash] : a.gradients) {
    const auto other = b.gradients.find(key);
    if (other == b.gradients.end() || other->second == hash || key.step >= step) continue;
    step = key.step;
    const bool have_leaves = !a.leaves.empty() && !b.leaves.empty();
    const char* what = !have_leaves ? "gradient"
                       : promised   ? "wrong fold (all leaves are equal)"
                                    : "sum of equal leaves";
    text = fmt::format("{}: step {}, gradient of '{}'", what, key.step + 1, spec.parameters[key.parameter].name);
  }
  for (size_t i = 0; i < std::min(a.losses.size(), b.losses.size()); ++i) {
    if (static_cast<int64_t>(i) >= step) break;
    if (!SameBits(a.losses[i], b.losses[i]))
      return fmt::format("step {}, loss {:.17g} against {:.17g}", i + 1, a.losses[i], b.losses[i]);
    if (!SameBits(a.norms[i], b.norms[i]))
      return fmt::format("step {}, gradient norm {:.17g} against {:.17g}", i + 1, a.norms[i], b.norms[i]);
  }
  return text;
}

void SetComputation(const runtime::Job& job, RecordedRun& recorded) {
  recorded.precision = job.precision;
  recorded.optimizer_config = job.optimizer;
  for (const model::ParameterSpec& parameter : job.spec.parameters)
    recorded.rounding[parameter.name].sensitivity = at::zeros({parameter.numel()}, at::kDouble);
}

// The relative error that a gradient may have: that of the products' operands, whatever the parameters are kept in.
double BoundOf(model::Precision precision, const checkpoint::RoundingBounds& bounds) {
  switch (precision) {
    case model::Precision::fp64:
      return bounds.fp64;
    case model::Precision::fp32:
      return bounds.fp32;
    case model::Precision::bf16:
      return 0x1p-8;  // of a rounded operand
    case model::Precision::fp16:
      return 0x1p-11;
  }
  throw InternalError("not a precision");
}

}  // namespace

RecordedRun RecordRun(const LoadedSettings& settings, PreparedRun& run, std::string title, RecordRounding rounding) {
  RecordedRun recorded;
  recorded.title = std::move(title);
  SetComputation(run.job, recorded);
  Recorder recorder(run.job.spec, recorded, rounding);
  const ObserverScope scope(run.job, recorder);
  run.weights = OpenStartWeights(settings, run);
  runtime::TrainLoop loop = MakeLoop(settings, run);
  loop.after_step = [&](const runtime::StepReport& step) {
    recorded.losses.push_back(step.result.verdict.loss);
    recorded.norms.push_back(step.result.verdict.norm);
    recorded.applied += step.result.applied ? 1 : 0;
    return runtime::AfterStep::go_on;  // a step that is not finite is left out, as the oracles do
  };
  runtime::TrainOutcome outcome = runtime::RunTrainLoop(loop, /*keep_state=*/true);
  recorded.parameters = std::move(outcome.parameters);
  recorded.optimizer = std::move(outcome.optimizer);
  return recorded;
}

RecordedRun RecordOracle(const LoadedSettings& settings, PreparedRun& run, OracleKind kind) {
  RecordedRun recorded;
  recorded.title = kind == OracleKind::plain ? "plain single-rank loop" : "plain backward on the whole batch";
  SetComputation(run.job, recorded);
  Recorder recorder(run.job.spec, recorded, RecordRounding::yes);
  const ObserverScope scope(run.job, recorder);
  run.weights = OpenStartWeights(settings, run);
  // On a rank thread, so that thread counts and floating-point state are those of a rank.
  comm::ThreadWorldOptions world;
  world.intra_op_threads = static_cast<int>(settings.values.runtime.intra_op_threads);
  comm::RunThreadRanks(1, world, [&](comm::Communicator&) {
    const auto oracle = kind == OracleKind::plain ? runtime::MakePlainLoop(run.job) : runtime::MakeWholeBatch(run.job);
    if (run.weights != nullptr) oracle->Start(*run.weights);
    int64_t applied = 0;
    LossScale loss_scale(run.job.loss_scale);
    for (int64_t step = 0; step < settings.values.train.steps; ++step) {
      runtime::StepBinding binding = BindStep(*run.batches, step, applied);
      binding.loss_scale = loss_scale.value();
      const runtime::OracleStep result = oracle->Step(binding);
      applied += result.applied;
      loss_scale.After(result.applied               ? LossScale::Step::applied
                       : std::isfinite(result.loss) ? LossScale::Step::gradient_not_finite
                                                    : LossScale::Step::loss_not_finite);
      recorded.losses.push_back(result.loss);
      recorded.norms.push_back(result.norm);
    }
    recorded.applied = applied;
    const auto model = runtime::ModelTensors(run.job);
    const auto optimizer = runtime::OptimizerTensors(run.job);
    size_t next = 0;
    for (size_t p = 0; p < model.size(); ++p) {
      recorded.parameters[model[p].name] = oracle->parameters()[p].clone();
      for (int i = 0; i < oracle->states()[p].size(); ++i)
        recorded.optimizer[optimizer[next++].name] = oracle->states()[p].tensor(i).view(model[p].shape).clone();
    }
  });
  return recorded;
}

RunComparison CompareRuns(const model::ModelSpec& spec, const RecordedRun& a, const RecordedRun& b, bool bits_promised,
                          const checkpoint::RoundingBounds& bounds) {
  RunComparison result;
  const RoundingAllowance allowance(a, b, BoundOf(a.precision, bounds), bounds);
  result.tensors = checkpoint::Compare(a.parameters, b.parameters,
                                       [&](const std::string& name) { return allowance.ForParameter(name); });
  const checkpoint::Comparison states =
      checkpoint::Compare(a.optimizer, b.optimizer, [&](const std::string& name) { return allowance.ForState(name); });
  result.tensors.tensors += states.tensors;
  result.tensors.verdict = std::max(result.tensors.verdict, states.verdict);
  result.tensors.differences.insert(result.tensors.differences.end(), states.differences.begin(),
                                    states.differences.end());
  result.verdict = result.tensors.verdict;
  bool same_numbers = a.losses.size() == b.losses.size();
  if (!same_numbers) result.verdict = checkpoint::Verdict::fault;
  for (size_t i = 0; i < std::min(a.losses.size(), b.losses.size()); ++i) {
    same_numbers = same_numbers && SameBits(a.losses[i], b.losses[i]) && SameBits(a.norms[i], b.norms[i]);
    result.loss_difference = std::max(result.loss_difference, RelativeDifference(a.losses[i], b.losses[i]));
    result.norm_difference = std::max(result.norm_difference, RelativeDifference(a.norms[i], b.norms[i]));
  }
  const double bound = BoundOf(a.precision, bounds);
  if (!same_numbers)
    result.verdict = std::max(result.verdict, std::max(result.loss_difference, result.norm_difference) <= bound
                                                  ? checkpoint::Verdict::rounding
                                                  : checkpoint::Verdict::fault);
  if (result.verdict != checkpoint::Verdict::equal) result.first = WhereItBegan(spec, a, b, bits_promised);
  return result;
}

}  // namespace penstock::session
