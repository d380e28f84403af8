#include "optim/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace penstock::optim {
namespace {

template <typename T>
std::vector<T> Random(int64_t n, std::mt19937_64& rng) {
  std::normal_distribution<double> normal;
  std::vector<T> values(n);
  for (T& x : values) x = static_cast<T>(normal(rng));
  return values;
}

template <typename T>
class Norm : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Norm, Types);

TYPED_TEST(Norm, FastEqualsReference) {
  std::mt19937_64 rng(1);
  for (const int64_t n : {0, 1, 3, 4, 1023, 1024, 1025, 4095, 4096, 4097, 10000}) {
    const auto values = Random<TypeParam>(n, rng);
    for (const NormKind kind : {NormKind::l2, NormKind::infinity}) {
      std::vector<double> fast(NumNormBlocks(n), -1.0), reference(NumNormBlocks(n), -2.0);
      EXPECT_EQ(BlockSums(values.data(), n, kind, fast.data()), 0);
      EXPECT_EQ(BlockSumsReference(values.data(), n, kind, reference.data()), 0);
      EXPECT_EQ(fast, reference) << n;
    }
  }
}

// Numerics test 3: any block-aligned sharding gives the bits of the whole.
TYPED_TEST(Norm, AnyShardingEqualsTheWhole) {
  std::mt19937_64 rng(2);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> numel;
    std::vector<std::vector<TypeParam>> parameters;
    for (int p = 0; p < 1 + static_cast<int>(rng() % 6); ++p) {
      numel.push_back(static_cast<int64_t>(rng() % 9000));
      parameters.push_back(Random<TypeParam>(numel.back(), rng));
    }
    const NormLayout layout(numel);
    for (const NormKind kind : {NormKind::l2, NormKind::infinity}) {
      std::vector<double> whole(layout.num_blocks()), sharded(layout.num_blocks());
      std::vector<double> per_parameter;
      for (int p = 0; p < layout.num_parameters(); ++p) {
        double* out = whole.data() + layout.first_block(p);
        BlockSums(parameters[p].data(), numel[p], kind, out);
        per_parameter.push_back(FinishParameter({out, static_cast<size_t>(NumNormBlocks(numel[p]))}, kind));
        for (int64_t begin = 0; begin < numel[p];) {
          const int64_t end = std::min(numel[p], begin + kNormBlock * (1 + static_cast<int64_t>(rng() % 4)));
          BlockSums(parameters[p].data() + begin, end - begin, kind,
                    &sharded[layout.first_block(p) + begin / kNormBlock]);
          begin = end;
        }
      }
      EXPECT_EQ(layout.Finish(whole, kind), layout.Finish(sharded, kind));
      EXPECT_EQ(layout.Finish(whole, kind), FinishNorm(per_parameter, kind));
    }
  }
}

TEST(NormFold, CutsOffBlockBordersHaveOtherBits) {  // why shards begin on block borders
  std::mt19937_64 rng(3);
  const auto values = Random<float>(4000, rng);
  std::vector<double> whole(4), a(1), b(4);
  BlockSums(values.data(), 4000, NormKind::l2, whole.data());
  BlockSums(values.data(), 333, NormKind::l2, a.data());
  BlockSums(values.data() + 333, 3667, NormKind::l2, b.data());
  EXPECT_NE(FinishParameter(whole, NormKind::l2), a[0] + FinishParameter(b, NormKind::l2));
}

TEST(NormFold, AgreesWithTheUsualNorm) {
  std::mt19937_64 rng(4);
  const auto values = Random<float>(100000, rng);
  long double sum = 0.0;
  float largest = 0.0f;
  for (const float x : values) {
    sum += static_cast<long double>(x) * x;
    largest = std::max(largest, std::abs(x));
  }
  const int64_t numel[] = {100000};
  const NormLayout layout(numel);
  std::vector<double> sums(layout.num_blocks());
  BlockSums(values.data(), 100000, NormKind::l2, sums.data());
  EXPECT_NEAR(layout.Finish(sums, NormKind::l2), static_cast<double>(std::sqrt(sum)), 1e-10);
  BlockSums(values.data(), 100000, NormKind::infinity, sums.data());
  EXPECT_EQ(layout.Finish(sums, NormKind::infinity), static_cast<double>(largest));
}

TEST(NormFold, NonFiniteElementsAreCounted) {
  std::vector<float> values(5000, 1.0f);
  values[7] = std::numeric_limits<float>::infinity();
  values[4999] = std::numeric_limits<float>::quiet_NaN();
  values[4998] = -std::numeric_limits<float>::infinity();
  for (const NormKind kind : {NormKind::l2, NormKind::infinity}) {
    std::vector<double> fast(5), reference(5);
    EXPECT_EQ(BlockSums(values.data(), 5000, kind, fast.data()), 3);
    EXPECT_EQ(BlockSumsReference(values.data(), 5000, kind, reference.data()), 3);
    EXPECT_FALSE(std::isfinite(FinishParameter(fast, kind)));
    EXPECT_TRUE(std::isnan(fast[4]));
    EXPECT_TRUE(std::isinf(fast[0]));
  }
}

TEST(NormFold, TheLargestFloatDoesNotOverflow) {
  std::vector<float> values(3000, std::numeric_limits<float>::max());
  std::vector<double> sums(3);
  EXPECT_EQ(BlockSums(values.data(), 3000, NormKind::l2, sums.data()), 0);
  EXPECT_TRUE(std::isfinite(FinishNorm(sums, NormKind::l2)));
}

TEST(Clip, Factor) {
  EXPECT_EQ(ClipFactor(10.0, 0.0), 1.0f);
  EXPECT_EQ(ClipFactor(0.5, 1.0), 1.0f);
  EXPECT_EQ(ClipFactor(4.0, 1.0), static_cast<float>(1.0 / (4.0 + 1e-6)));
  EXPECT_EQ(ClipFactor(0.0, 1.0), 1.0f);
  EXPECT_EQ(ClipFactor(std::numeric_limits<double>::infinity(), 1.0), 0.0f);
  EXPECT_TRUE(std::isnan(ClipFactor(std::nan(""), 1.0)));
}

TEST(Clip, NormNames) {
  EXPECT_EQ(ParseNormKind("l2"), NormKind::l2);
  EXPECT_EQ(ParseNormKind("inf"), NormKind::infinity);
  EXPECT_THROW(ParseNormKind("l1"), UserError);
}

}  // namespace
}  // namespace penstock::optim
