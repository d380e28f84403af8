// Gradients over holders (numerics.md R4, R5): reduce sums one use over the ranks that have it; sum_uses adds the
// reduced uses of a shared parameter in layer order and gives every holder the total.
#include "schedule/buffers.h"
#include "schedule/operators.h"

namespace penstock::schedule {
namespace {

const RegisterOperator kReduce{{
    .name = std::string(ops::kReduce),
    .kind = Kind::collective,
    .summary = "sum of one use's gradient over its holders, by the canonical tree",
    .effects =
        [](const Schedule&, int, const Action& a, std::vector<Effect>& effects) {
          // Accumulate, not write: a holder without micro-batches brings nothing and receives the sum.
          effects.push_back({GradientBuffer(a.key.unit, a.key.part), Access::accumulate});
        },
}};

const RegisterOperator kSumUses{{
    .name = std::string(ops::kSumUses),
    .kind = Kind::collective,
    .summary = "total gradient of a shared parameter over its uses, in layer order",
    .effects =
        [](const Schedule& s, int rank, const Action& a, std::vector<Effect>& effects) {
          const ParameterUnit& unit = s.holders.units[a.key.unit.stage];
          std::vector<BufferId> own;
          for (size_t i = 0; i < unit.uses.size(); ++i)
            if (s.HasRank(unit.uses[i].group, rank)) own.push_back(GradientBuffer(unit.unit, static_cast<int16_t>(i)));
          for (const BufferId& b : own) effects.push_back({b, Access::read});
          effects.push_back({GradientBuffer(unit.unit, kTotalPart), Access::allocate});
          for (const BufferId& b : own) effects.push_back({b, Access::free});
        },
}};

}  // namespace
}  // namespace penstock::schedule
