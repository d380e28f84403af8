#include "cost/arithmetic.h"

namespace penstock::cost {

Arithmetic OwnArithmetic(model::Precision precision) {
  const int wide = model::WideBytes(precision);
  return {.precision = std::string(model::PrecisionName(precision)),
          .weight_bytes = wide,
          .activation_bytes = wide,
          .boundary_bytes = wide,
          .gradient_bytes = wide,
          .master_bytes = 0,
          .state_bytes = wide,
          .own = true};
}

Arithmetic MixedArithmetic(const std::string& precision) {
  return {.precision = precision,
          .weight_bytes = 2,
          .activation_bytes = 2,
          .boundary_bytes = 2,
          .gradient_bytes = 4,
          .master_bytes = 4,
          .state_bytes = 4,
          .own = false};
}

}  // namespace penstock::cost
