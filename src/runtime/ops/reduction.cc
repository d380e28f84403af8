// Handlers of reduce and sum_uses (docs/numerics.md R4, R5).
#include <algorithm>

#include "base/error.h"
#include "memory/accounting.h"
#include "runtime/executor.h"
#include "runtime/gradients.h"
#include "runtime/tags.h"
#include "schedule/buffers.h"
#include "schedule/operators.h"

namespace penstock::runtime {
namespace {

using schedule::Action;

// Sums one use over its holders. Everything is posted; the buffer is complete when its works are.
void Reduce(ExecutionContext& context, const Action& action) {
  const int u = action.key.unit.stage;
  const model::ModelUnit& unit = context.job.units[u];
  Buffer& buffer = context.buffers.Obtain(schedule::GradientBuffer(action.key.unit, action.key.part));
  const comm::Group& group = context.groups[action.peer_or_group];
  memory::MemoryScope scope(memory::BufferClass::gradient);
  buffer.tensors.resize(unit.parameters.size());
  for (size_t i = 0; i < unit.parameters.size(); ++i) {
    comm::Communicator::Contributions nodes;
    if (!buffer.sums.empty())
      for (auto& [node, sum] : buffer.sums[i].Take())
        if (sum.defined()) nodes.emplace_back(node, std::move(sum));
    // The sum lands in a tensor that is there already, where there is one: fresh memory costs page faults.
    at::Tensor& out = buffer.tensors[i];
    out = nodes.empty() ? ZeroGradient(context, unit.parameters[i]) : nodes.front().second;
    const comm::Tag tag = TagOf(action.key, context.binding.step, static_cast<int>(i));
    if (context.job.reproducible) {
      buffer.works.push_back(
          context.communicator.AllReduceTree(group, tag, std::move(nodes), context.num_micro_batches(), out));
    } else {
      PENSTOCK_CHECK(nodes.size() <= 1, "a running sum has one part, not {}", nodes.size());
      buffer.works.push_back(context.communicator.AllReduceSum(group, tag, out));
    }
  }
  buffer.sums.clear();
}

// Total over the uses. Where every use has the same holders each of them adds up what it has; else the first holder of
// each use brings it and all holders of the unit get the sum.
void SumUses(ExecutionContext& context, const Action& action) {
  const int u = action.key.unit.stage;
  const model::ModelUnit& unit = context.job.units[u];
  const schedule::ParameterUnit& holders = context.schedule.holders.units[u];
  const auto uses = static_cast<int32_t>(holders.uses.size());
  const int rank = context.communicator.rank();
  memory::MemoryScope scope(memory::BufferClass::gradient);

  const bool everywhere = std::all_of(holders.uses.begin(), holders.uses.end(),
                                      [&](const schedule::ParameterUse& use) { return use.group == holders.group; });
  std::vector<std::vector<at::Tensor>*> own(uses, nullptr);
  for (int i = 0; i < uses; ++i)
    if (context.schedule.HasRank(holders.uses[i].group, rank)) own[i] = &LocalGradients(context, u, i);
  Buffer& total = context.buffers.Allocate(schedule::GradientBuffer(action.key.unit, schedule::kTotalPart));
  for (size_t p = 0; p < unit.parameters.size(); ++p) {
    if (everywhere) {
      optim::PartialSums sums(uses, optim::PartialSums::Mode::tree, nn::WideType(context.job.precision));
      for (int i = 0; i < uses; ++i) sums.Add(i, std::move((*own[i])[p]));
      total.tensors.push_back(sums.TakeRoot());
      continue;
    }
    comm::Communicator::Contributions nodes;
    at::Tensor out;
    for (int i = 0; i < uses; ++i) {
      if (own[i] == nullptr) continue;
      if (!out.defined()) out = (*own[i])[p];
      if (context.schedule.groups[holders.uses[i].group].front() == rank)
        nodes.emplace_back(TreeNode{i, i + 1}, (*own[i])[p]);
    }
    total.tensors.push_back(out);
    total.works.push_back(context.communicator.AllReduceTree(
        context.groups[action.peer_or_group], TagOf(action.key, context.binding.step, static_cast<int>(p)),
        std::move(nodes), uses, out));
  }
}

const RegisterHandler kReduce{{std::string(schedule::ops::kReduce), &Reduce}};
const RegisterHandler kSumUses{{std::string(schedule::ops::kSumUses), &SumUses}};

}  // namespace
}  // namespace penstock::runtime
