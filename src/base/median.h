// src/base/median.h
//
// The middle value of a sample; of an even number the mean of the two. 0 when there is none.
#pragma once

#include <algorithm>
#include <vector>

namespace penstock {

inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace penstock
