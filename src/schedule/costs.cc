#include "schedule/costs.h"

namespace penstock::schedule {

Rational UniformActionCosts::Duration(const Schedule&, int, const Action& action) const {
  switch (action.key.kind) {
    case Kind::forward:
    case Kind::recompute:
      return costs_.forward;
    case Kind::backward:
      return costs_.backward();
    case Kind::backward_input:
      return costs_.backward_input;
    case Kind::backward_weight:
      return costs_.backward_weight;
    case Kind::update:
    case Kind::check:
    case Kind::task:
    case Kind::send:
    case Kind::recv:
    case Kind::collective:
    case Kind::copy:
      return 0;
  }
  return 0;
}

Rational UniformActionCosts::Latency(const Schedule&, int, int, const Action&) const { return costs_.hop; }

}  // namespace penstock::schedule
