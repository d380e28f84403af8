// Loss, norm and the verdict before the update. norm: sum of squares and non-finite count of a unit's final gradient;
// gather_statistics: every rank learns all losses and norms; finite_clip: the same decision on every rank, made from
// the same numbers (numerics.md R9, R10, R12).
#include "schedule/buffers.h"
#include "schedule/operators.h"

namespace penstock::schedule {
namespace {

const RegisterOperator kNorm{{
    .name = std::string(ops::kNorm),
    .kind = Kind::task,
    .summary = "sum of squares and count of non-finite elements of a unit's gradient",
    .effects =
        [](const Schedule& s, int, const Action& a, std::vector<Effect>& effects) {
          const ParameterUnit& unit = s.holders.units[a.key.unit.stage];
          effects.push_back({FinalGradient(unit), Access::read});
          effects.push_back({NormBuffer(unit.unit), Access::allocate});
        },
}};

const RegisterOperator kGatherStatistics{{
    .name = std::string(ops::kGatherStatistics),
    .kind = Kind::collective,
    .summary = "losses and norms of all ranks, to all ranks",
    .effects =
        [](const Schedule& s, int rank, const Action&, std::vector<Effect>& effects) {
          for (const ParameterUnit& unit : s.holders.units)
            if (!unit.uses.empty() && s.HasRank(unit.group, rank))
              effects.push_back({NormBuffer(unit.unit), Access::read});
          for (int stage = 0; stage < s.num_stages(); ++stage) {
            if (!s.graph.is_last(stage)) continue;
            for (int m = 0; m < s.num_micro_batches(); ++m)
              if (s.route.rank_of(stage, m) == rank) effects.push_back({LossBuffer(stage, m), Access::read});
          }
          effects.push_back({GatheredBuffer(), Access::allocate});
        },
}};

const RegisterOperator kFiniteClip{{
    .name = std::string(ops::kFiniteClip),
    .kind = Kind::check,
    .summary = "sets predicate 0: every loss and gradient of the step is finite; and the clip factor",
    .effects =
        [](const Schedule&, int, const Action&, std::vector<Effect>& effects) {
          effects.push_back({GatheredBuffer(), Access::read});
          effects.push_back({VerdictBuffer(), Access::allocate});
        },
}};

}  // namespace
}  // namespace penstock::schedule
