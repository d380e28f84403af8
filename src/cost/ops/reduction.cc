// Gradients over their holders: a ring all-reduce between devices (docs/collectives.md); between threads of one machine
// the canonical tree in shared memory, which moves every member's partial sums and the result through memory.
#include <fmt/format.h>

#include <algorithm>

#include "cost/layer_price.h"
#include "cost/operator_price.h"
#include "cost/plan_costs.h"
#include "schedule/operators.h"

namespace penstock::cost {
namespace {

// The elements that the reduction of a unit carries: with Stack::reduce_at_end the first stage of a rank, whose
// backward is the last, those of all its stages, and the others none.
double ElementsOf(const PlanCosts& costs, const schedule::Action& action) {
  const CostRequest& q = costs.request();
  const int unit = action.key.unit.stage, stages = q.partition.stages();
  if (!q.stack.reduce_at_end || unit >= stages || action.key.op != schedule::FindOp(schedule::ops::kReduce))
    return static_cast<double>(costs.elements(unit));
  const int rank = q.schedule.route.rank_of(unit, 0);
  double elements = 0;
  for (int stage = 0; stage < stages; ++stage) {
    if (q.schedule.route.rank_of(stage, 0) != rank) continue;
    if (stage < unit) return 0;
    elements += static_cast<double>(costs.elements(stage));
  }
  return elements;
}

Price Reduce(const PlanCosts& costs, int rank, const schedule::Action& action, const char* what) {
  const double elements = ElementsOf(costs, action);
  const GroupLink& link = costs.link_of_group(action.peer_or_group);
  const Arithmetic& arithmetic = costs.request().arithmetic;
  if (elements == 0) return {};
  if (link.members < 2) {  // uses of a shared parameter on one rank are added where they are
    const auto uses = static_cast<double>(costs.request().schedule.holders.units[action.key.unit.stage].uses.size());
    return MemoryBound(costs.device(rank), uses > 1 ? 3 * (uses - 1) * elements * arithmetic.gradient_bytes : 0);
  }
  if (const auto measured =
          costs.Measured(fmt::format("{}:{}:{}", what, link.members, costs.precision_subject()), elements))
    return *measured;
  const double bytes = elements * arithmetic.gradient_bytes;
  if (costs.device(rank).cores > 0 && link.bytes_per_second <= 0)
    return SmallExchange(link) + MemoryBound(costs.device(rank), bytes * static_cast<double>(link.members + 1));
  const Stack& stack = costs.request().stack;
  Price price = AllReduce(link, bytes);
  // Beside the backward of the last micro-batch, which no more than the last bucket outlasts.
  if (stack.overlap_reduce && action.key.op == schedule::FindOp(schedule::ops::kReduce)) {
    const int stages = costs.request().partition.stages();
    const int stage = std::min<int>(action.key.unit.stage, stages - 1);
    const double hidden = std::min(price.seconds, costs.BackwardSeconds(rank, stage));
    price.seconds -= (1 - stack.overlap_cost) * hidden;
  }
  if (stack.flattened_reduce) price += 2 * MemoryBound(costs.device(rank), 2 * bytes);
  return price;
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
