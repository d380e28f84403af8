#include "data/order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace penstock::data {
namespace {

std::vector<int64_t> First(int64_t n, uint64_t seed, int64_t epoch, int count) {
  const KeyedPermutation permutation(n, seed, epoch);
  std::vector<int64_t> out;
  for (int i = 0; i < count; ++i) out.push_back(permutation(i));
  return out;
}

TEST(KeyedPermutation, IsABijection) {
  std::vector<int64_t> sizes;
  for (int64_t n = 1; n <= 70; ++n) sizes.push_back(n);
  for (const int64_t n : {127, 128, 129, 255, 256, 257, 1000, 1023, 1025, 4095, 4096, 4097, 10007}) sizes.push_back(n);
  for (const int64_t n : sizes) {
    for (const uint64_t seed : {0ull, 1ull, 2ull, ~0ull}) {
      for (const int64_t epoch : {int64_t{0}, int64_t{1}, int64_t{1} << 40}) {
        const KeyedPermutation permutation(n, seed, epoch);
        std::vector<bool> seen(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = permutation(i);
          ASSERT_TRUE(at >= 0 && at < n && !seen[static_cast<size_t>(at)]) << n << " " << seed << " " << epoch;
          seen[static_cast<size_t>(at)] = true;
        }
      }
    }
  }
}

// Values of an independent implementation. A change here changes the data order of every run: never "update" them.
TEST(KeyedPermutation, Golden) {
  EXPECT_EQ(First(16, 1, 0, 16), (std::vector<int64_t>{10, 2, 5, 8, 1, 14, 6, 3, 0, 7, 15, 13, 4, 11, 12, 9}));
  EXPECT_EQ(First(1000, 1, 0, 16),
            (std::vector<int64_t>{771, 992, 975, 607, 797, 175, 316, 778, 565, 222, 727, 591, 0, 733, 235, 315}));
  EXPECT_EQ(First(1000, 1, 1, 16),
            (std::vector<int64_t>{592, 434, 644, 95, 795, 309, 184, 447, 487, 69, 802, 921, 465, 898, 624, 716}));
  EXPECT_EQ(First(1000, 2, 0, 16),
            (std::vector<int64_t>{187, 253, 235, 785, 140, 925, 738, 321, 761, 511, 971, 150, 689, 671, 457, 514}));
  EXPECT_EQ(First(1'000'000'000'000, 7, 3, 4),
            (std::vector<int64_t>{133460864464, 870819981930, 402900283800, 436826643617}));
}

// Position and sample are not related: with 100 values in each of 10 x 10 cells, chi-squared of 81 degrees of freedom
// (mean 81, standard deviation 12.7) stays below 140 for a good shuffle.
TEST(KeyedPermutation, ScattersNeighbours) {
  constexpr int64_t kN = 10'000;
  for (const uint64_t seed : {1ull, 2ull, 3ull, 4ull, 5ull}) {
    const KeyedPermutation permutation(kN, seed, 0);
    std::vector<double> cells(100);
    for (int64_t i = 0; i < kN; ++i) ++cells[static_cast<size_t>(i / 1000 * 10 + permutation(i) / 1000)];
    double chi = 0;
    for (const double c : cells) chi += (c - 100) * (c - 100) / 100;
    EXPECT_LT(chi, 140) << seed;
  }
}

TEST(KeyedPermutation, WorksAtTheEndOfTheRange) {
  const KeyedPermutation permutation(INT64_MAX, 1, 0);
  for (const int64_t i : {int64_t{0}, int64_t{1}, INT64_MAX - 1}) EXPECT_GE(permutation(i), 0);
}

}  // namespace
}  // namespace penstock::data
