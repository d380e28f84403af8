// Norms read every gradient once; gathering them is a matter of latency; the verdict is a few numbers.
#include <fmt/format.h>

#include "cost/layer_price.h"
#include "cost/operator_price.h"
#include "cost/plan_costs.h"
#include "schedule/operators.h"

namespace penstock::cost {
namespace {

const RegisterPrice kNorm{{
    .name = std::string(schedule::ops::kNorm),
    .price =
        [](const PlanCosts& costs, int rank, const schedule::Action& action) {
          const auto elements = static_cast<double>(costs.elements(action.key.unit.stage));
          const Arithmetic& arithmetic = costs.request().arithmetic;
          if (elements == 0) return Price{};
          if (const auto measured = costs.Measured(fmt::format("norm:{}", costs.precision_subject()), elements))
            return *measured;
          return MemoryBound(costs.device(rank), elements * arithmetic.gradient_bytes);
        },
}};

const RegisterPrice kGatherStatistics{{
    .name = std::string(schedule::ops::kGatherStatistics),
    .price = [](const PlanCosts& costs, int,
                const schedule::Action& action) { return SmallExchange(costs.link_of_group(action.peer_or_group)); },
}};

const RegisterPrice kFiniteClip{{
    .name = std::string(schedule::ops::kFiniteClip),
    .price =
        [](const PlanCosts& costs, int rank, const schedule::Action&) {
          return Price{costs.device(rank).launch_seconds, false};
        },
}};

}  // namespace
}  // namespace penstock::cost
