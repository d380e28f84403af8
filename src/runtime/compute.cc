// Handlers of forward, recompute and the halves of backward. Autograd is cut at stage boundaries: a stage runs on its
// own graph from detached inputs and per-micro-batch aliases of its parameters, and its leaves come from
// autograd::grad (docs/numerics.md R1); .grad and AccumulateGrad are not used.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "base/error.h"
#include "memory/accounting.h"
#include "optim/unscale.h"
#include "runtime/executor.h"
#include "schedule/buffers.h"

namespace penstock::runtime {
namespace {

using schedule::Action;
using schedule::BufferId;

nn::LayerContext MakeLayerContext(ExecutionContext& context, int m) {
  nn::LayerContext layer;
  layer.batch = &context.Inputs(m);
  layer.seed = context.job.seed;
  layer.step = context.binding.step;
  layer.precision = context.job.precision;
  return layer;
}

bool IsEmpty(const ExecutionContext& context, int m) { return context.binding.micro_batches[m].samples == 0; }

// Runs the layers of a stage. `aliases`: receives the parameter aliases; null: the parameters themselves are used (no
// graph is wanted).
std::vector<at::Tensor> RunLayers(ExecutionContext& context, int stage, int m, std::vector<at::Tensor> values,
                                  std::vector<Alias>* aliases) {
  const nn::LayerContext layer_context = MakeLayerContext(context, m);
  const int first = context.job.partition.first[stage];
  const auto& layers = context.state.layers(stage);
  LayerClock& clock = context.clock;
  for (size_t i = 0; i < layers.size(); ++i) {
    const int layer = first + static_cast<int>(i);
    const auto start = clock.on() ? LayerClock::Clock::now() : LayerClock::Clock::time_point{};
    std::vector<at::Tensor> parameters;
    for (const int p : context.job.spec.layers[layer].parameters) {
      if (aliases == nullptr) {
        parameters.push_back(context.state.parameter(p));
      } else {
        aliases->push_back({layer, p, context.state.parameter(p).detach().requires_grad_(true)});
        parameters.push_back(aliases->back().tensor);
      }
    }
    values = layers[i]->Forward(values, parameters, layer_context);
    if (!clock.on()) continue;
    clock.Add(layer, std::chrono::duration<double>(LayerClock::Clock::now() - start).count());
    if (aliases != nullptr && i + 1 < layers.size())
      for (at::Tensor& value : values) clock.HookOutput(value, layer);
  }
  return values;
}

std::unique_ptr<SavedStage> RunWithGraph(ExecutionContext& context, int stage, int m, std::vector<at::Tensor> inputs) {
  auto saved = std::make_unique<SavedStage>();
  for (const at::Tensor& input : inputs) saved->inputs.push_back(input.detach().requires_grad_(true));
  saved->outputs = RunLayers(context, stage, m, saved->inputs, &saved->aliases);
  return saved;
}

void StoreLoss(ExecutionContext& context, int stage, int m, double loss_sum) {
  if (context.job.loss_fault) loss_sum = context.job.loss_fault(context.binding.step, m, loss_sum);
  context.buffers.Allocate(schedule::LossBuffer(stage, m)).numbers = {loss_sum};
}

void StoreOutputs(ExecutionContext& context, int stage, int m, const std::vector<at::Tensor>& outputs) {
  if (context.schedule.graph.is_last(stage)) {
    PENSTOCK_CHECK_EQ(outputs.size(), size_t{1});
    StoreLoss(context, stage, m, outputs[0].item<double>());
    return;
  }
  for (const int e : context.schedule.graph.outputs(stage)) {
    Buffer& out = context.buffers.Allocate(schedule::BoundaryValue(context.schedule, e, m));
    // Contiguous, without history: receivers on every back end see the same strides (R6).
    for (const at::Tensor& t : outputs) out.tensors.push_back(t.detach().contiguous());
  }
}

void RunEmptyForward(ExecutionContext& context, int stage, int m) {
  const bool recompute = context.schedule.stage_options[stage].recompute;
  Buffer& kept = context.buffers.Allocate(recompute ? schedule::SavedInputs(stage, m) : schedule::SavedGraph(stage, m));
  if (!recompute) {
    kept.saved = std::make_unique<SavedStage>();
    kept.saved->empty = true;
  }
  if (context.schedule.graph.is_last(stage)) StoreLoss(context, stage, m, 0.0);
  for (const int e : context.schedule.graph.outputs(stage))
    context.buffers.Allocate(schedule::BoundaryValue(context.schedule, e, m));
}

// The gradient sums of one use: created when the first micro-batch arrives.
optim::PartialSums& SumsOf(ExecutionContext& context, schedule::UseRef use, int parameter) {
  const model::ModelUnit& unit = context.job.units[use.unit];
  Buffer& buffer = context.buffers.Obtain(
      schedule::GradientBuffer(context.schedule.holders.units[use.unit].unit, static_cast<int16_t>(use.use)));
  if (buffer.sums.empty()) {
    const auto mode = context.job.reproducible ? optim::PartialSums::Mode::tree : optim::PartialSums::Mode::running;
    for (size_t i = 0; i < unit.parameters.size(); ++i)
      buffer.sums.emplace_back(context.num_micro_batches(), mode, nn::WideType(context.job.precision));
  }
  const auto it = std::find(unit.parameters.begin(), unit.parameters.end(), parameter);
  return buffer.sums[it - unit.parameters.begin()];
}

// Which use of which unit the alias of (layer, parameter) is.
schedule::UseRef UseOf(const ExecutionContext& context, int stage, int layer, int parameter) {
  for (const schedule::UseRef use : schedule::UsesOfStage(context.schedule, stage)) {
    const model::ModelUnit& unit = context.job.units[use.unit];
    const int use_layer = unit.uses[use.use].layer;
    if ((use_layer == -1 || use_layer == layer) &&
        std::find(unit.parameters.begin(), unit.parameters.end(), parameter) != unit.parameters.end())
      return use;
  }
  throw InternalError(fmt::format("parameter {} of layer {} is in no unit of stage {}", parameter, layer, stage));
}

void AddLeaf(ExecutionContext& context, int stage, int m, const Alias& alias, at::Tensor gradient) {
  memory::MemoryScope scope(memory::BufferClass::gradient);
  const auto start = context.clock.on() ? LayerClock::Clock::now() : LayerClock::Clock::time_point{};
  if (gradient.defined() && context.job.leaf_fault)
    context.job.leaf_fault(context.binding.step, m, alias.parameter, gradient);
  if (gradient.defined() && context.job.loss_scale.enabled && !optim::Unscale(gradient, context.binding.loss_scale)) {
    const auto layers = static_cast<int64_t>(context.job.spec.layers.size());
    const LeafFault fault{m * layers + (layers - 1 - alias.layer), alias.parameter};
    if (!context.leaf_fault || fault < *context.leaf_fault) context.leaf_fault = fault;
  }
  if (context.job.observer != nullptr)
    context.job.observer->Leaf(context.binding.step, m, alias.layer, alias.parameter, gradient);
  optim::PartialSums& sums = SumsOf(context, UseOf(context, stage, alias.layer, alias.parameter), alias.parameter);
  if (gradient.defined()) {
    sums.Add(m, std::move(gradient));
  } else {
    sums.AddAbsent(m);
  }
  if (context.clock.on())
    context.clock.Add(alias.layer, std::chrono::duration<double>(LayerClock::Clock::now() - start).count());
}

void AddAbsentLeaves(ExecutionContext& context, int stage, int m) {
  const int first = context.job.partition.first[stage], last = context.job.partition.first[stage + 1];
  for (int layer = first; layer < last; ++layer)
    for (const int p : context.job.spec.layers[layer].parameters) AddLeaf(context, stage, m, {layer, p, {}}, {});
}

// Gradients of the stage's outputs: what the consumers sent back, or the scale of the loss.
std::vector<at::Tensor> OutputGradients(ExecutionContext& context, int stage, int m, const SavedStage& saved) {
  if (context.schedule.graph.is_last(stage)) {
    // R10: float(1 / N); in fp64 runs the fp64 quotient, since rounding it to float would cost seven digits.
    const double scale =
        context.binding.valid_tokens == 0 ? 0.0 : 1.0 / static_cast<double>(context.binding.valid_tokens);
    const double value =
        context.job.precision == model::Precision::fp64 ? scale : static_cast<double>(static_cast<float>(scale));
    return {at::full({}, value * context.binding.loss_scale, saved.outputs[0].options().requires_grad(false))};
  }
  std::vector<at::Tensor> total;
  for (const int e : context.schedule.graph.outputs(stage)) {
    const std::vector<at::Tensor>& part =
        context.buffers.At(schedule::BoundaryGradient(context.schedule, e, m)).tensors;
    if (total.empty()) {
      total = part;
    } else {
      for (size_t i = 0; i < part.size(); ++i) total[i] = total[i] + part[i];  // several consumers: in edge order
    }
  }
  return total;
}

}  // namespace

void RunForward(ExecutionContext& context, const Action& action) {
  const int stage = action.key.unit.stage, m = action.key.micro_batch;
  if (IsEmpty(context, m)) return RunEmptyForward(context, stage, m);
  memory::MemoryScope scope(memory::BufferClass::activation);
  std::vector<at::Tensor> inputs;
  for (const int e : context.schedule.graph.inputs(stage)) {
    const auto& tensors = context.buffers.At(schedule::BoundaryValue(context.schedule, e, m)).tensors;
    inputs.insert(inputs.end(), tensors.begin(), tensors.end());
  }
  if (context.schedule.stage_options[stage].recompute) {
    at::NoGradGuard no_grad;
    const std::vector<at::Tensor> outputs = RunLayers(context, stage, m, inputs, nullptr);
    StoreOutputs(context, stage, m, outputs);
    context.buffers.Allocate(schedule::SavedInputs(stage, m)).tensors = std::move(inputs);
  } else {
    std::unique_ptr<SavedStage> saved = RunWithGraph(context, stage, m, std::move(inputs));
    StoreOutputs(context, stage, m, saved->outputs);
    context.buffers.Allocate(schedule::SavedGraph(stage, m)).saved = std::move(saved);
  }
}

void RunRecompute(ExecutionContext& context, const Action& action) {
  const int stage = action.key.unit.stage, m = action.key.micro_batch;
  memory::MemoryScope scope(memory::BufferClass::activation);
  std::unique_ptr<SavedStage> saved;
  if (IsEmpty(context, m)) {
    saved = std::make_unique<SavedStage>();
    saved->empty = true;
  } else {
    saved = RunWithGraph(context, stage, m, context.buffers.At(schedule::SavedInputs(stage, m)).tensors);
  }
  context.buffers.Allocate(schedule::SavedGraph(stage, m)).saved = std::move(saved);
}

void RunBackward(ExecutionContext& context, const Action& action, bool defer) {
  const int stage = action.key.unit.stage, m = action.key.micro_batch;
  SavedStage& saved = *context.buffers.At(schedule::SavedGraph(stage, m)).saved;
  WeightStash* stash = nullptr;
  if (defer) {
    Buffer& buffer = context.buffers.Allocate(schedule::WeightStash(stage, m));
    buffer.stash = std::make_unique<WeightStash>();
    stash = buffer.stash.get();
  }
  const auto& input_edges = context.schedule.graph.inputs(stage);
  for (const int e : input_edges) context.buffers.Allocate(schedule::BoundaryGradient(context.schedule, e, m));
  if (saved.empty) return AddAbsentLeaves(context, stage, m);

  std::vector<at::Tensor> leaves = saved.inputs;
  for (const Alias& alias : saved.aliases) leaves.push_back(alias.tensor);
  std::vector<at::Tensor> gradients;
  {
    memory::MemoryScope scope(memory::BufferClass::gradient);
    const std::vector<at::Tensor> output_gradients = OutputGradients(context, stage, m, saved);
    std::optional<nn::DeferredGrads::Scope> deferring;
    if (defer) deferring.emplace(stash->deferred);
    if (context.clock.on()) context.clock.BeginBackward(context.job.partition.first[stage + 1] - 1);
    gradients = torch::autograd::grad(saved.outputs, leaves, output_gradients, /*retain_graph=*/false,
                                      /*create_graph=*/false, /*allow_unused=*/true);
    if (context.clock.on()) context.clock.EndBackward();
  }
  saved.outputs.clear();  // the graph is gone

  size_t next = 0;
  for (const int e : input_edges) {
    // Boundaries of a chain: every edge carries all inputs of the stage that came over it, in order.
    Buffer& out = context.buffers.At(schedule::BoundaryGradient(context.schedule, e, m));
    const size_t count = saved.inputs.size() / input_edges.size();
    for (size_t i = 0; i < count; ++i, ++next) out.tensors.push_back(gradients[next].contiguous());
  }
  for (const Alias& alias : saved.aliases) {
    at::Tensor gradient = std::move(gradients[next++]);
    if (!gradient.defined() && defer) {
      stash->waiting.push_back(alias);
    } else {
      AddLeaf(context, stage, m, alias, std::move(gradient));
    }
  }
}

void RunBackwardWeight(ExecutionContext& context, const Action& action) {
  const int stage = action.key.unit.stage, m = action.key.micro_batch;
  WeightStash& stash = *context.buffers.At(schedule::WeightStash(stage, m)).stash;
  memory::MemoryScope scope(memory::BufferClass::gradient);
  at::NoGradGuard no_grad;
  auto since = LayerClock::Clock::now();
  stash.deferred.Flush([&](nn::DeferredGrads::Result result) {
    const auto it = std::find_if(stash.waiting.begin(), stash.waiting.end(),
                                 [&](const Alias& alias) { return alias.tensor.is_same(result.leaf); });
    PENSTOCK_CHECK(it != stash.waiting.end(), "a deferred gradient of stage {} belongs to no parameter", stage);
    if (context.clock.on())
      context.clock.Add(it->layer, std::chrono::duration<double>(LayerClock::Clock::now() - since).count());
    AddLeaf(context, stage, m, *it, std::move(result.grad));
    stash.waiting.erase(it);
    since = LayerClock::Clock::now();
  });
  for (const Alias& alias : stash.waiting) AddLeaf(context, stage, m, alias, {});
}

}  // namespace penstock::runtime
