#include "runtime/gradients.h"

#include <ATen/ops/zeros.h>

#include "base/error.h"
#include "memory/accounting.h"
#include "schedule/buffers.h"

namespace penstock::runtime {

at::Tensor ZeroGradient(const ExecutionContext& context, int parameter) {
  memory::MemoryScope scope(memory::BufferClass::gradient);
  return at::zeros(context.job.spec.parameters[parameter].shape, nn::WideType(context.job.precision));
}

std::vector<at::Tensor>& LocalGradients(ExecutionContext& context, int unit, int use) {
  const model::ModelUnit& parameters = context.job.units[unit];
  Buffer& buffer = context.buffers.At(
      schedule::GradientBuffer(context.schedule.holders.units[unit].unit, static_cast<int16_t>(use)));
  if (!buffer.tensors.empty()) return buffer.tensors;
  for (size_t i = 0; i < parameters.parameters.size(); ++i) {
    auto sums = buffer.sums[i].Take();
    PENSTOCK_CHECK(sums.size() == 1, "gradient of {} is in {} pieces when it should be complete",
                   context.job.spec.parameters[parameters.parameters[i]].name, sums.size());
    at::Tensor sum = std::move(sums[0].second);
    buffer.tensors.push_back(sum.defined() ? std::move(sum) : ZeroGradient(context, parameters.parameters[i]));
  }
  buffer.sums.clear();
  return buffer.tensors;
}

std::vector<at::Tensor>& FinalGradients(ExecutionContext& context, int unit) {
  const schedule::ParameterUnit& holders = context.schedule.holders.units[unit];
  if (holders.shared()) return context.buffers.At(schedule::FinalGradient(holders)).tensors;
  return LocalGradients(context, unit, 0);
}

}  // namespace penstock::runtime
