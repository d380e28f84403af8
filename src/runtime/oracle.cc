#include "runtime/oracle.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "base/error.h"
#include "base/tree.h"
#include "nn/init.h"
#include "optim/learning_rate.h"
#include "optim/norm.h"

namespace penstock::runtime {
namespace {

// T over values[lo, hi), undefined ones skipped: new tensors, no buffers reused.
at::Tensor Fold(const std::vector<at::Tensor>& values, int32_t lo, int32_t hi) {
  if (hi - lo == 1) return values[lo];
  const int32_t mid = TreeNode{lo, hi}.mid();
  const at::Tensor a = Fold(values, lo, mid), b = Fold(values, mid, hi);
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

double GradientScale(const Job& job, const StepBinding& binding) {
  if (binding.valid_tokens == 0) return 0.0;
  const double scale = 1.0 / static_cast<double>(binding.valid_tokens);
  return job.precision == model::Precision::fp64 ? scale : static_cast<double>(static_cast<float>(scale));
}

double ParameterNorm(const at::Tensor& gradient, optim::NormKind kind) {
  std::vector<double> blocks(optim::NumNormBlocks(gradient.numel()));
  if (gradient.scalar_type() == at::kDouble) {
    optim::BlockSumsReference(gradient.const_data_ptr<double>(), gradient.numel(), kind, blocks.data());
  } else {
    optim::BlockSumsReference(gradient.const_data_ptr<float>(), gradient.numel(), kind, blocks.data());
  }
  return optim::FinishParameter(blocks, kind);
}

class PlainLoop final : public Oracle {
 public:
  using Oracle::Oracle;

  OracleStep Step(const StepBinding& binding) override {
    const auto micro_batches = static_cast<int32_t>(binding.micro_batches.size());
    // leaves[layer][i][j]: use i of the layer, micro-batch j.
    std::vector<std::vector<std::vector<at::Tensor>>> leaves(layers_.size());
    for (size_t l = 0; l < layers_.size(); ++l)
      leaves[l].assign(job_.spec.layers[l].parameters.size(), std::vector<at::Tensor>(micro_batches));
    std::vector<double> losses(micro_batches, 0.0);
    for (int32_t j = 0; j < micro_batches; ++j) {
      if (binding.micro_batches[j].samples == 0) continue;
      const nn::MicroBatchInputs inputs = binding.materialize(j);
      std::vector<std::vector<at::Tensor>> aliases(layers_.size());
      std::vector<at::Tensor> all;
      for (size_t l = 0; l < layers_.size(); ++l) {
        for (const int p : job_.spec.layers[l].parameters) {
          aliases[l].push_back(parameters_[p].detach().requires_grad_(true));
          all.push_back(aliases[l].back());
        }
      }
      const at::Tensor loss = Loss(inputs, binding.step, [&](size_t l) { return aliases[l]; });
      losses[j] = loss.item<double>();
      const auto gradients = torch::autograd::grad(
          {loss}, all,
          {at::full({}, GradientScale(job_, binding) * binding.loss_scale, loss.options().requires_grad(false))},
          /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
      size_t next = 0;
      for (size_t l = 0; l < leaves.size(); ++l)
        for (size_t i = 0; i < leaves[l].size(); ++i) {
          at::Tensor g = gradients[next++];
          if (g.defined() && binding.loss_scale != 1) g = g / binding.loss_scale;
          if (job_.observer != nullptr)
            job_.observer->Leaf(binding.step, j, static_cast<int>(l), job_.spec.layers[l].parameters[i], g);
          leaves[l][i][j] = g.defined() ? g.to(nn::WideType(job_.precision)).contiguous() : g;
        }
    }
    // Per use over micro-batches, then over the uses in layer order.
    std::vector<std::vector<at::Tensor>> uses(parameters_.size());
    for (size_t l = 0; l < layers_.size(); ++l)
      for (size_t i = 0; i < leaves[l].size(); ++i)
        uses[job_.spec.layers[l].parameters[i]].push_back(Fold(leaves[l][i], 0, micro_batches));
    std::vector<at::Tensor> gradients(parameters_.size());
    std::vector<double> norms(parameters_.size());
    const optim::NormKind kind = optim::ParseNormKind(job_.optimizer.clip_norm);
    for (size_t p = 0; p < parameters_.size(); ++p) {
      gradients[p] = Fold(uses[p], 0, static_cast<int32_t>(uses[p].size()));
      if (!gradients[p].defined()) gradients[p] = at::zeros_like(parameters_[p]);
      norms[p] = ParameterNorm(gradients[p], kind);
      if (job_.observer != nullptr) job_.observer->Gradient(binding.step, static_cast<int>(p), gradients[p]);
    }
    OracleStep step;
    double loss_sum = 0;
    TreeSum(
        losses, 0, micro_batches, [&](int32_t j) { return binding.micro_batches[j].samples == 0; }, loss_sum);
    step.loss = binding.valid_tokens == 0 ? 0.0 : loss_sum / static_cast<double>(binding.valid_tokens);
    step.norm = optim::FinishNorm(norms, kind);
    step.clip_factor = optim::ClipFactor(step.norm, job_.optimizer.clip);
    ApplyUpdate(gradients, binding, step);
    return step;
  }
};

class WholeBatch final : public Oracle {
 public:
  using Oracle::Oracle;

  OracleStep Step(const StepBinding& binding) override {
    int64_t length = 0;
    for (const MicroBatchSize& size : binding.micro_batches) length = std::max(length, size.length);
    // All samples in one batch; shorter micro-batches are padded on the right, which causal attention does not see.
    std::vector<at::Tensor> tokens, labels;
    nn::MicroBatchInputs whole;
    for (size_t j = 0; j < binding.micro_batches.size(); ++j) {
      if (binding.micro_batches[j].samples == 0) continue;
      const nn::MicroBatchInputs part = binding.materialize(static_cast<int>(j));
      const int64_t rows = part.tokens.size(0), columns = part.tokens.size(1);
      at::Tensor padded_tokens = at::zeros({rows, length}, at::kLong);
      at::Tensor padded_labels = at::full({rows, length}, nn::kIgnoredLabel, at::kLong);
      padded_tokens.narrow(1, 0, columns).copy_(part.tokens);
      padded_labels.narrow(1, 0, columns).copy_(part.labels);
      tokens.push_back(padded_tokens);
      labels.push_back(padded_labels);
      whole.sample_ids.insert(whole.sample_ids.end(), part.sample_ids.begin(), part.sample_ids.end());
    }
    whole.tokens = at::cat(tokens);
    whole.labels = at::cat(labels);
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& p : parameters_) leaves.push_back(p.detach().clone().requires_grad_(true));
    const at::Tensor loss = Loss(whole, binding.step,
                                 [&](size_t l) {
                                   std::vector<at::Tensor> used;
                                   for (const int p : job_.spec.layers[l].parameters) used.push_back(leaves[p]);
                                   return used;
                                 }) /
                            static_cast<double>(binding.valid_tokens);
    torch::autograd::backward({loss * binding.loss_scale});
    OracleStep step;
    step.loss = loss.item<double>();
    const bool largest = optim::ParseNormKind(job_.optimizer.clip_norm) == optim::NormKind::infinity;
    double squares = 0, maximum = 0;
    std::vector<at::Tensor> gradients;
    for (size_t p = 0; p < leaves.size(); ++p) {
      gradients.push_back(leaves[p].grad().defined() ? leaves[p].grad() / binding.loss_scale
                                                     : at::zeros_like(leaves[p]));
      if (job_.observer != nullptr) job_.observer->Gradient(binding.step, static_cast<int>(p), gradients.back());
      const at::Tensor wide = gradients.back().to(at::kDouble);
      const double norm = wide.norm().item<double>();
      squares += norm * norm;
      if (wide.numel() > 0) maximum = std::max(maximum, wide.abs().max().item<double>());
    }
    // The sum of squares is not finite exactly when something in it is not; a maximum may pass over a NaN.
    step.norm = !largest || !std::isfinite(squares) ? std::sqrt(squares) : maximum;
    step.clip_factor = optim::ClipFactor(step.norm, job_.optimizer.clip);
    ApplyUpdate(gradients, binding, step);
    return step;
  }
};

}  // namespace

Oracle::Oracle(const Job& job)
    : job_(job), layers_(nn::BuildLayers(job.spec, 0, static_cast<int>(job.spec.layers.size()))) {
  const optim::Optimizer& optimizer = Registry<optim::Optimizer>::Find(job.optimizer.name);
  for (const model::ParameterSpec& parameter : job.spec.parameters) {
    parameters_.push_back(nn::InitialParameter(parameter, job.seed, job.precision));
    states_.emplace_back(optimizer, job.optimizer, parameter.numel(), nn::WideType(job.precision));
  }
}

void Oracle::Start(const checkpoint::Checkpoint& weights) {
  for (size_t p = 0; p < parameters_.size(); ++p)
    parameters_[p].copy_(weights.ReadModel(job_.spec.parameters[p].name, job_.spec.parameters[p].shape));
}

template <typename ParametersOf>
at::Tensor Oracle::Loss(const nn::MicroBatchInputs& inputs, int64_t step, const ParametersOf& parameters_of) const {
  nn::LayerContext context;
  context.batch = &inputs;
  context.seed = job_.seed;
  context.step = step;
  context.precision = job_.precision;
  std::vector<at::Tensor> values;
  for (size_t l = 0; l < layers_.size(); ++l) values = layers_[l]->Forward(values, parameters_of(l), context);
  return values[0];
}

void Oracle::ApplyUpdate(const std::vector<at::Tensor>& gradients, const StepBinding& binding, OracleStep& step) {
  step.applied = std::isfinite(step.loss) && std::isfinite(step.norm);
  if (!step.applied) return;
  const optim::Optimizer& optimizer = Registry<optim::Optimizer>::Find(job_.optimizer.name);
  optim::UpdateInput input;
  input.update = binding.applied_updates + 1;
  input.learning_rate = optim::LearningRate(job_.optimizer, binding.applied_updates, job_.total_updates);
  input.gradient_scale = static_cast<double>(step.clip_factor);
  for (size_t p = 0; p < parameters_.size(); ++p) {
    input.decay = optim::DecayApplies(job_.optimizer, static_cast<int64_t>(job_.spec.parameters[p].shape.size()));
    optim::Update(optimizer, job_.optimizer, input, parameters_[p], gradients[p].contiguous(), states_[p]);
    if (job_.observer != nullptr) job_.observer->Updated(binding.step, static_cast<int>(p), input, states_[p]);
  }
}

std::unique_ptr<Oracle> MakePlainLoop(const Job& job) { return std::make_unique<PlainLoop>(job); }
std::unique_ptr<Oracle> MakeWholeBatch(const Job& job) { return std::make_unique<WholeBatch>(job); }

}  // namespace penstock::runtime
