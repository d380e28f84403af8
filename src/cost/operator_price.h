// src/cost/operator_price.h
//
// The price of an operator (schedule/operators.h), registered by a file in cost/ops under the operator's name; a test
// demands one for each. Sends are priced with their link by PlanCosts.
#pragma once

#include <string>

#include "base/registry.h"
#include "cost/price.h"
#include "schedule/action.h"

namespace penstock::cost {

class PlanCosts;

struct OperatorPrice {
  static constexpr const char* kRegistryName = "price of an operator";
  std::string name;
  Price (*price)(const PlanCosts& costs, int rank, const schedule::Action& action) = nullptr;
};
using RegisterPrice = Register<OperatorPrice>;

}  // namespace penstock::cost
