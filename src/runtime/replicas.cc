#include "runtime/replicas.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace penstock::runtime {

constexpr uint64_t kReplicas = uint64_t{0xfffc} << 48;  // no operator's id

void RequireEqualReplicas(const Job& job, const schedule::Schedule& schedule, comm::Communicator& communicator,
                          RankState& state) {
  communicator.SetCurrent("comparing what the replicas loaded");
  std::vector<int64_t> own;  // unit, both halves of its hash
  for (size_t u = 0; u < job.units.size(); ++u) {
    const schedule::ParameterUnit& unit = schedule.holders.units[u];
    if (unit.uses.empty() || !schedule.HasRank(unit.group, communicator.rank())) continue;
    if (schedule.groups[unit.group].size() == 1) continue;
    Hasher hasher;
    const auto add = [&hasher](const at::Tensor& t) { hasher.Update(t.const_data_ptr(), t.nbytes()); };
    for (const int p : job.units[u].parameters) {
      add(state.parameter(p));
      for (int i = 0; i < optim::StatesPerParameter(job.optimizer); ++i) add(state.optimizer_state(p).tensor(i));
    }
    const Hash128 hash = hasher.Digest();
    own.insert(own.end(), {static_cast<int64_t>(u), static_cast<int64_t>(hash.high), static_cast<int64_t>(hash.low)});
  }
  at::Tensor data = at::empty({static_cast<int64_t>(own.size())}, at::kLong);
  std::copy(own.begin(), own.end(), data.data_ptr<int64_t>());
  const auto all = communicator.AllGatherV(communicator.world(), {kReplicas, 0}, data)->TakeTensors();
  std::map<int64_t, std::pair<int, std::pair<int64_t, int64_t>>> first;  // by unit: rank and hash
  for (size_t r = 0; r < all.size(); ++r) {
    const int64_t* const v = all[r].const_data_ptr<int64_t>();
    for (int64_t i = 0; i + 3 <= all[r].numel(); i += 3) {
      const std::pair<int64_t, int64_t> hash{v[i + 1], v[i + 2]};
      const auto [at, added] = first.emplace(v[i], std::pair(static_cast<int>(r), hash));
      if (!added && at->second.second != hash)
        throw WorldError(
            fmt::format("after loading, ranks {} and {} hold different values of '{}' and the parameters with it: the "
                        "memory or the "
                        "disk of one of them is faulty",
                        at->second.first, r, job.spec.parameters[job.units[v[i]].parameters[0]].name));
    }
  }
}

}  // namespace penstock::runtime
