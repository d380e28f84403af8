// src/base/median.h
//
// The middle value of a sample; of an even number the upper of the two. 0 when there is none.
#pragma once

#include <algorithm>
#include <vector>

namespace penstock {

inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace penstock
