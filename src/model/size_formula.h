// src/model/size_formula.h
//
// A number of elements or flops as a function of the micro-batch's shape.
#pragma once

#include <cstdint>

namespace penstock::model {

// batch * (per_sample + length * per_token + length^2 * per_token_pair)
struct SizeFormula {
  int64_t per_sample = 0;
  int64_t per_token = 0;
  int64_t per_token_pair = 0;
  int64_t operator()(int64_t batch, int64_t length) const {
    return batch * (per_sample + length * (per_token + length * per_token_pair));
  }
};
SizeFormula operator+(SizeFormula a, SizeFormula b);
SizeFormula operator*(int64_t factor, SizeFormula a);

}  // namespace penstock::model
