// Boundary tensors: the transfer keeps the sender's channel busy and is priced there (PlanCosts::PriceSend); a receive
// takes nothing but what the stack does to put shares together.
#include "cost/operator_price.h"
#include "cost/plan_costs.h"
#include "schedule/operators.h"

namespace penstock::cost {
namespace {

Price Handling(const PlanCosts& costs, int rank, const schedule::Action& action) {
  return costs.GatherBoundary(rank, action.key.part);
}

const RegisterPrice kActivation{{.name = std::string(schedule::ops::kActivation), .price = Handling}};
const RegisterPrice kGradient{{.name = std::string(schedule::ops::kGradient), .price = Handling}};

}  // namespace
}  // namespace penstock::cost
