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

Price Reduce(const PlanCosts& costs, int rank, const schedule::Action& action, const char* what) {
  const auto elements = static_cast<double>(costs.elements(action.key.unit.stage));
  const GroupLink& link = costs.link_of_group(action.peer_or_group);
  if (link.members < 2 || elements == 0) return {};
  const Arithmetic& arithmetic = costs.request().arithmetic;
  if (const auto measured =
          costs.Measured(fmt::format("{}:{}:{}", what, link.members, arithmetic.precision), elements))
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
