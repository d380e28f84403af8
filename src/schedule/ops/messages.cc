// Boundary tensors between ranks: op activation carries the value of an edge to its consumer, op gradient the gradient
// back to its producer. key.unit is the stage that produced the tensor, key.part the edge.
#include "schedule/buffers.h"
#include "schedule/operators.h"

namespace penstock::schedule {
namespace {

void MessageEffects(const Action& action, BufferId buffer, std::vector<Effect>& effects) {
  if (action.key.kind == Kind::send) {
    effects.push_back({buffer, Access::read});
    effects.push_back({buffer, Access::free});
  } else {
    effects.push_back({buffer, Access::allocate});
  }
}

const RegisterOperator kActivation{{
    .name = std::string(ops::kActivation),
    .kind = Kind::send,
    .summary = "value of a stage boundary, to the next stage",
    .effects =
        [](const Schedule& s, int, const Action& a, std::vector<Effect>& effects) {
          MessageEffects(a, BoundaryValue(s, a.key.part, a.key.micro_batch), effects);
        },
}};

const RegisterOperator kGradient{{
    .name = std::string(ops::kGradient),
    .kind = Kind::send,
    .summary = "gradient of a stage boundary, back to the stage that produced it",
    .effects =
        [](const Schedule& s, int, const Action& a, std::vector<Effect>& effects) {
          MessageEffects(a, BoundaryGradient(s, a.key.part, a.key.micro_batch), effects);
        },
}};

}  // namespace
}  // namespace penstock::schedule
