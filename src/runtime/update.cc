// Handler of update: the optimizer on every parameter of one unit.
#include "memory/accounting.h"
#include "optim/learning_rate.h"
#include "runtime/executor.h"
#include "runtime/gradients.h"
#include "schedule/buffers.h"

namespace penstock::runtime {

void RunUpdate(ExecutionContext& context, const schedule::Action& action) {
  const Job& job = context.job;
  const int u = action.key.unit.stage;
  const std::vector<at::Tensor>& gradients = FinalGradients(context, u);
  const optim::Optimizer& optimizer = Registry<optim::Optimizer>::Find(job.optimizer.name);
  optim::UpdateInput input;
  input.update = context.binding.applied_updates + 1;
  input.learning_rate = optim::LearningRate(job.optimizer, context.binding.applied_updates, job.total_updates);
  input.gradient_scale = context.result.checked ? static_cast<double>(context.result.verdict.clip_factor) : 1.0;
  for (size_t i = 0; i < job.units[u].parameters.size(); ++i) {
    const int p = job.units[u].parameters[i];
    if (job.observer != nullptr) job.observer->Gradient(context.binding.step, p, gradients[i]);
    input.decay = optim::DecayApplies(job.optimizer, static_cast<int64_t>(job.spec.parameters[p].shape.size()));
    optim::Update(optimizer, job.optimizer, input, context.state.parameter(p), gradients[i],
                  context.state.optimizer_state(p));
    if (job.observer != nullptr)
      job.observer->Updated(context.binding.step, p, input, context.state.optimizer_state(p));
  }
  context.result.applied = true;
  context.result.learning_rate = input.learning_rate;
}

}  // namespace penstock::runtime
