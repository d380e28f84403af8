#include "model/precision.h"

#include "base/error.h"
#include "base/nearest.h"

namespace penstock::model {

std::string_view PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::fp64:
      return "fp64";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
  }
  throw InternalError("unknown precision");
}

Precision ParsePrecision(std::string_view name) {
  for (Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16, Precision::fp16})
    if (PrecisionName(precision) == name) return precision;
  throw UserError("there is no precision '{}'{}", name, DidYouMean(name, {"fp32", "fp64", "bf16", "fp16"}));
}

}  // namespace penstock::model
