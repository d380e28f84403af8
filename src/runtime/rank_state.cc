#include "runtime/rank_state.h"

#include "base/error.h"
#include "memory/accounting.h"
#include "nn/init.h"

namespace penstock::runtime {

RankState::RankState(const Job& job, const schedule::Schedule& schedule, int rank)
    : parameters_(job.spec.parameters.size()), states_(job.spec.parameters.size()) {
  PENSTOCK_CHECK_EQ(job.units.size(), schedule.holders.units.size());
  const optim::Optimizer& optimizer = Registry<optim::Optimizer>::Find(job.optimizer.name);
  const at::ScalarType dtype = nn::WideType(job.precision);
  for (size_t u = 0; u < job.units.size(); ++u) {
    const schedule::ParameterUnit& unit = schedule.holders.units[u];
    if (unit.uses.empty() || !schedule.HasRank(unit.group, rank)) continue;
    for (const int p : job.units[u].parameters) {
      {
        memory::MemoryScope scope(memory::BufferClass::parameter);
        parameters_[p] = nn::InitialParameter(job.spec.parameters[p], job.seed, job.precision);
      }
      memory::MemoryScope scope(memory::BufferClass::optimizer_state);
      states_[p] = optim::OptimizerState(optimizer, job.optimizer, job.spec.parameters[p].numel(), dtype);
    }
  }
  for (int s = 0; s < schedule.num_stages(); ++s) {
    bool runs = false;
    for (const schedule::ParameterUnit& unit : schedule.holders.units)
      for (const schedule::ParameterUse& use : unit.uses)
        runs = runs || (use.stage == s && schedule.HasRank(use.group, rank));
    if (!runs)  // a stage without parameters has no holders; the route says who runs it
      for (int m = 0; m < schedule.num_micro_batches() && !runs; ++m) runs = schedule.route.rank_of(s, m) == rank;
    if (runs) layers_[s] = nn::BuildLayers(job.spec, job.partition.first[s], job.partition.first[s + 1]);
  }
}

const std::vector<std::unique_ptr<nn::Layer>>& RankState::layers(int stage) const {
  const auto it = layers_.find(stage);
  PENSTOCK_CHECK(it != layers_.end(), "this rank does not run stage {}", stage);
  return it->second;
}

}  // namespace penstock::runtime
