#include "optim/unscale.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace penstock::optim {
namespace {

at::Tensor Values(int64_t n, at::ScalarType dtype) { return at::arange(n, dtype).mul(0.37).sin(); }

TEST(Unscale, IsExact) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble})
    for (const double scale : {0x1p-10, 1.0, 2.0, 65536.0, 0x1p40})
      for (const int64_t n : {0, 1, 7, 64, 1000}) {
        const at::Tensor plain = Values(n, dtype);
        at::Tensor scaled = plain * scale;
        EXPECT_TRUE(Unscale(scaled, scale));
        EXPECT_TRUE(at::equal(scaled, plain)) << scale << " " << n;
      }
}

// Wherever the element is: vector body or tail.
TEST(Unscale, NotFiniteElementsAreSeen) {
  for (const double bad :
       {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
    for (const int64_t at : {0, 1, 17, 63, 64, 66}) {
      at::Tensor t = Values(67, at::kFloat);
      t.data_ptr<float>()[at] = static_cast<float>(bad);
      EXPECT_FALSE(Unscale(t, 4));
      EXPECT_FALSE(std::isfinite(t.data_ptr<float>()[at])) << "infinities stay what they are";
    }
  at::Tensor largest = at::full({5}, std::numeric_limits<float>::max(), at::kFloat);
  EXPECT_TRUE(Unscale(largest, 2));
}

TEST(Unscale, OnlyWhatNobodyElseSeesIsWritten) {
  at::Tensor own = Values(8, at::kFloat);
  const void* const memory = own.const_data_ptr();
  Unscale(own, 2);
  EXPECT_EQ(own.const_data_ptr(), memory);

  const at::Tensor base = Values(8, at::kFloat), before = base.clone();
  for (at::Tensor shared :
       std::vector<at::Tensor>{base, base.view({2, 4}), base.narrow(0, 2, 3), base.view({2, 4}).t()}) {
    const at::Tensor expected = shared / 2;
    Unscale(shared, 2);
    EXPECT_TRUE(at::equal(shared, expected));
    EXPECT_TRUE(shared.is_contiguous());
  }
  at::Tensor expanded = at::full({1}, 6.0, at::kFloat).expand({3, 4});  // one element seen twelve times
  Unscale(expanded, 2);
  EXPECT_TRUE(at::equal(expanded, at::full({3, 4}, 3.0, at::kFloat)));
  EXPECT_TRUE(at::equal(base, before));
}

}  // namespace
}  // namespace penstock::optim
