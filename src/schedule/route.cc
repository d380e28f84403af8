#include "schedule/route.h"

#include "base/error.h"
#include "base/nearest.h"

namespace penstock::schedule {

const std::vector<std::string>& PlacementNames() {
  static const std::vector<std::string> names = {"linear", "block", "loop", "v"};
  return names;
}

std::vector<int> MakePlacement(std::string_view name, int p, int stages) {
  if (p < 1 || stages < 1)
    throw UserError("a placement needs at least 1 position and 1 stage, not {} and {}", p, stages);
  std::vector<int> position(stages);
  if (name == "linear") {
    if (stages != p)
      throw UserError(
          "placement 'linear' puts one stage on each of {} positions, but there are {} stages; use 'loop' or 'block'",
          p, stages);
    for (int s = 0; s < stages; ++s) position[s] = s;
  } else if (name == "block" || name == "loop") {
    if (stages % p != 0) throw UserError("placement '{}' needs a multiple of {} stages, not {}", name, p, stages);
    for (int s = 0; s < stages; ++s) position[s] = name == "block" ? s / (stages / p) : s % p;
  } else if (name == "v") {
    if (stages != 2 * p)
      throw UserError("placement 'v' needs {} stages on {} positions (2 chunks each), not {}", 2 * p, p, stages);
    for (int s = 0; s < stages; ++s) position[s] = s < p ? s : 2 * p - 1 - s;
  } else {
    throw UserError("there is no placement named '{}'{}", name, DidYouMean(name, PlacementNames()));
  }
  return position;
}

std::vector<int32_t> ContiguousReplicas(int micro_batches, int replicas) {
  std::vector<int32_t> replica_of;
  replica_of.reserve(micro_batches);
  for (int r = 0; r < replicas; ++r) {
    const int count = micro_batches / replicas + (r < micro_batches % replicas ? 1 : 0);
    replica_of.insert(replica_of.end(), count, r);
  }
  return replica_of;
}

}  // namespace penstock::schedule
