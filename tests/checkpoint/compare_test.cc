#include "checkpoint/compare.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "checkpoint/safetensors.h"
#include "checkpoint/temporary_directory.h"
#include "checkpoint/tensor_hash.h"

namespace penstock::checkpoint {
namespace {

at::Tensor Floats(const std::vector<float>& values) {
  at::Tensor t = at::empty({static_cast<int64_t>(values.size())}, at::kFloat);
  std::copy(values.begin(), values.end(), t.mutable_data_ptr<float>());
  return t;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Compare, EqualAndNan) {
  const at::Tensor a = Floats({1.0f, kNan, kInfinity});
  EXPECT_EQ(CompareTensor("w", a, a.clone()).verdict, Verdict::equal);
  at::Tensor other_nan = a.clone();
  other_nan.mutable_data_ptr<float>()[1] = -kNan;
  EXPECT_EQ(CompareTensor("w", a, other_nan).verdict, Verdict::equal);
  EXPECT_EQ(CompareTensor("w", at::empty({0, 3}), at::empty({0, 3})).verdict, Verdict::equal);
}

TEST(Compare, FirstDifferenceAndUlp) {
  const float next = std::nextafter(2.0f, 3.0f);
  const TensorDifference d = CompareTensor("w", Floats({1.0f, 2.0f, 5.0f}),
                                           Floats({1.0f, next, std::nextafter(std::nextafter(5.0f, 9.0f), 9.0f)}));
  EXPECT_EQ(d.verdict, Verdict::rounding);
  EXPECT_EQ(d.count, 2);
  EXPECT_EQ(d.element, 1);
  EXPECT_EQ(d.a, 2.0);
  EXPECT_EQ(d.b, static_cast<double>(next));
  EXPECT_EQ(d.ulp, 1u);
  EXPECT_EQ(d.max_ulp, 2u);
  EXPECT_NEAR(d.max_relative, d.max_absolute / 5.0, 1e-12);
  EXPECT_NE(d.ToString().find("first [1]"), std::string::npos) << d.ToString();
}

TEST(Compare, UlpAcrossZeroAndSignedZero) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(CompareTensor("w", Floats({tiny, 1.0f}), Floats({-tiny, 1.0f})).ulp, 2u);
  const TensorDifference zeros = CompareTensor("w", Floats({0.0f}), Floats({-0.0f}));
  EXPECT_EQ(zeros.verdict, Verdict::rounding);
  EXPECT_EQ(zeros.ulp, 0u);
  EXPECT_EQ(zeros.max_absolute, 0.0);
}

TEST(Compare, Faults) {
  EXPECT_EQ(CompareTensor("w", Floats({1.0f, 2.0f}), Floats({1.0f, 2.1f})).verdict, Verdict::fault);
  EXPECT_EQ(CompareTensor("w", Floats({1.0f}), Floats({kNan})).verdict, Verdict::fault);
  EXPECT_EQ(CompareTensor("w", Floats({1.0f}), Floats({kInfinity})).verdict, Verdict::fault);
  EXPECT_EQ(CompareTensor("w", Floats({kInfinity}), Floats({-kInfinity})).verdict, Verdict::fault);
  EXPECT_EQ(CompareTensor("w", Floats({1.0f}), Floats({1.0f, 2.0f})).verdict, Verdict::fault);
  EXPECT_EQ(CompareTensor("w", Floats({1.0f}), at::full({1}, 1.0, at::kDouble)).verdict, Verdict::fault);
  EXPECT_EQ(CompareTensor("w", at::full({2}, 3, at::kLong), at::full({2}, 4, at::kLong)).verdict, Verdict::fault);
}

// A16: each precision has its own bound.
TEST(Compare, BoundsByPrecision) {
  for (const auto& [dtype, rounding, fault] :
       {std::tuple{at::kDouble, 1e-12, 1e-6}, std::tuple{at::kFloat, 1e-6, 1e-3}, std::tuple{at::kBFloat16, 8e-3, 1e-1},
        std::tuple{at::kHalf, 1e-3, 1e-1}}) {
    const at::Tensor a = at::full({4}, 1.0, dtype);
    EXPECT_EQ(CompareTensor("w", a, at::full({4}, 1.0 + rounding, dtype)).verdict, Verdict::rounding) << dtype;
    EXPECT_EQ(CompareTensor("w", a, at::full({4}, 1.0 + fault, dtype)).verdict, Verdict::fault) << dtype;
  }
  EXPECT_EQ(CompareTensor("w", at::full({1}, 1.0f), at::full({1}, 1.5f), {.fp32 = 1.0}).verdict, Verdict::rounding);
}

TEST(Compare, SetsOfTensors) {
  const NamedTensors a{{"x", Floats({1.0f})}, {"y", Floats({2.0f})}, {"z", Floats({3.0f})}};
  const NamedTensors b{{"w", Floats({1.0f})}, {"x", Floats({1.0f})}, {"z", Floats({std::nextafter(3.0f, 4.0f)})}};
  EXPECT_EQ(Compare(a, a).verdict, Verdict::equal);
  EXPECT_EQ(Compare(a, a).tensors, 3);
  const Comparison c = Compare(a, b);
  EXPECT_EQ(c.verdict, Verdict::fault);
  ASSERT_EQ(c.differences.size(), 3u);
  EXPECT_EQ(c.differences[0].name, "y");
  EXPECT_EQ(c.differences[1].name, "z");
  EXPECT_EQ(c.differences[1].verdict, Verdict::rounding);
  EXPECT_EQ(c.differences[2].name, "w");
  EXPECT_NE(c.ToString().find("3 of 4 tensors differ"), std::string::npos) << c.ToString();
}

TEST(Compare, FileAgainstMemory) {
  const TemporaryDirectory directory;
  const NamedTensors tensors{{"x", Floats({1.0f, 2.0f})}, {"y", Floats({})}};
  WriteSafetensors(directory / "x", FromMemory(tensors));
  const SafetensorsReader reader(directory / "x");
  EXPECT_EQ(Compare(FromFile(reader), FromMemory(tensors)).verdict, Verdict::equal);
}

TEST(TensorHash, DependsOnNameTypeShapeAndBytes) {
  const at::Tensor x = Floats({1.0f, 2.0f, 3.0f, 4.0f});
  const std::string hash = HashTensor("x", x);
  EXPECT_EQ(hash.size(), 32u);
  EXPECT_EQ(hash, HashTensor("x", x.clone()));
  EXPECT_NE(hash, HashTensor("y", x));
  EXPECT_NE(hash, HashTensor("x", x.view({2, 2})));
  EXPECT_NE(hash, HashTensor("x", x.view(at::kInt)));
  EXPECT_NE(hash, HashTensor("x", x + 1));
  EXPECT_EQ(HashTensor("x", x.view({2, 2}).t()), HashTensor("x", x.view({2, 2}).t().contiguous()));
}

}  // namespace
}  // namespace penstock::checkpoint
