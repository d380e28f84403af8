// Gradients over their holders: a ring all-reduce between devices (docs/collectives.md); between threads of one machine
// the canonical tree in shared memory, which moves every member's partial sums and the result through memory.
#include <fmt/format.h>

#include "cost/layer_price.h"
#include "cost/operator_price.h"
#include "cost/plan_costs.h"
#include "schedule/operators.h"

namespace penstock::cost {
namespace {

Price Reduce(const PlanCosts& costs, int rank, const schedule::Action& action, const char* what) {
  const auto elements = static_cast<double>(costs.elements(action.key.unit.stage));
  const GroupLink& link = costs.link_of_group(action.peer_or_group);
  const Arithmetic& arithmetic = costs.request().arithmetic;
  if (elements == 0) return {};
  if (link.members < 2) {  // uses of a shared parameter on one rank are added where they are
    const auto uses = static_cast<double>(costs.request().schedule.holders.units[action.key.unit.stage].uses.size());
    return MemoryBound(costs.device(rank), uses > 1 ? 3 * (uses - 1) * elements * arithmetic.gradient_bytes : 0);
  }
  if (const auto measured = costs.Measured(fmt::format("{}:{}:{}", what, link.members, arithmetic.precision), elements))
    return *measured;
  const double bytes = elements * arithmetic.gradient_bytes;
  if (costs.device(rank).cores > 0 && link.bytes_per_second <= 0)
    return SmallExchange(link) + MemoryBound(costs.device(rank), bytes * static_cast<double>(link.members + 1));
  return AllReduce(link, bytes);
}

const RegisterPrice kReduce{{
    .name = std::string(schedule::ops::kReduce),
    .price = [](const PlanCosts& costs, int rank,
                const schedule::Action& action) { return Reduce(costs, rank, action, "reduce"); },
}};
// Between the first uses of a shared parameter: the same traffic over the holders of all uses.
const RegisterPrice kSumUses{{
    .name = std::string(schedule::ops::kSumUses),
    .price = [](const PlanCosts& costs, int rank,
                const schedule::Action& action) { return Reduce(costs, rank, action, "sum_uses"); },
}};

}  // namespace
}  // namespace penstock::cost
