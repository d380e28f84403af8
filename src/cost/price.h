// src/cost/price.h
//
// Seconds, and whether they rest on values outside the range in which anything was measured or stated.
#pragma once

namespace penstock::cost {

struct Price {
  double seconds = 0;
  bool extrapolated = false;
  Price& operator+=(const Price& other) {
    seconds += other.seconds;
    extrapolated = extrapolated || other.extrapolated;
    return *this;
  }
  friend Price operator+(Price a, const Price& b) { return a += b; }
  friend Price operator*(double factor, Price p) { return {factor * p.seconds, p.extrapolated}; }
};

}  // namespace penstock::cost
