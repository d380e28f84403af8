// The operators of step_schedule.h.
#include "schedule/operators.h"
#include "step_schedule.h"

namespace penstock::cost {
namespace {

void NoEffects(const schedule::Schedule&, int, const schedule::Action&, std::vector<schedule::Effect>&) {}

const schedule::RegisterOperator kCollective{{.name = kTestCollective,
                                              .kind = schedule::Kind::collective,
                                              .summary = "a collective without effects",
                                              .effects = &NoEffects}};
const schedule::RegisterOperator kTask{
    {.name = kTestTask, .kind = schedule::Kind::task, .summary = "compute without effects", .effects = &NoEffects}};

}  // namespace
}  // namespace penstock::cost
