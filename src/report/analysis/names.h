// src/report/analysis/names.h
#pragma once

#include <fmt/format.h>

#include <string>

#include "schedule/operators.h"

namespace penstock::report::analysis {

// "forward", "collective:reduce".
inline std::string ClassName(const schedule::Key& key) {
  std::string name(schedule::Name(key.kind));
  if (key.op != schedule::kNoOp) name += fmt::format(":{}", schedule::OpName(key.op));
  return name;
}

}  // namespace penstock::report::analysis
