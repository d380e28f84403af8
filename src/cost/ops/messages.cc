// Boundary tensors: the transfer keeps the sender's channel busy and is priced there (PlanCosts::PriceSend); a receive
// takes nothing but its own handling.
#include "cost/operator_price.h"
#include "schedule/operators.h"

namespace penstock::cost {
namespace {

Price Handling(const PlanCosts&, int, const schedule::Action&) { return {}; }

const RegisterPrice kActivation{{.name = std::string(schedule::ops::kActivation), .price = Handling}};
const RegisterPrice kGradient{{.name = std::string(schedule::ops::kGradient), .price = Handling}};

}  // namespace
}  // namespace penstock::cost
