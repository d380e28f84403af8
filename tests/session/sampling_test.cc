#include "session/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"

namespace penstock::session {
namespace {

std::vector<double> Logits(const std::vector<double>& probabilities) {
  std::vector<double> logits;
  for (const double p : probabilities) logits.push_back(std::log(p) + 3);  // any constant
  return logits;
}

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
}

const std::vector<double> kFive = {0.1, 0.4, 0.2, 0.25, 0.05};

TEST(Sampling, TemperatureIsAPowerOfTheProbabilities) {
  ExpectNear(NextTokenProbabilities(Logits(kFive), {.temperature = 1}), kFive);
  double total = 0;
  for (const double p : kFive) total += p * p;
  std::vector<double> squares;
  for (const double p : kFive) squares.push_back(p * p / total);
  ExpectNear(NextTokenProbabilities(Logits(kFive), {.temperature = 0.5}), squares);
  ExpectNear(NextTokenProbabilities(Logits(kFive), {.temperature = 0}), {0, 1, 0, 0, 0});
  ExpectNear(NextTokenProbabilities(Logits({0.3, 0.35, 0.35}), {.temperature = 0}), {0, 1, 0});  // ties: the lower id
}

TEST(Sampling, TopK) {
  const auto kept = [](int64_t k) { return NextTokenProbabilities(Logits(kFive), {.temperature = 1, .top_k = k}); };
  ExpectNear(kept(1), {0, 1, 0, 0, 0});
  ExpectNear(kept(2), {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0});
  ExpectNear(kept(5), kFive);
  ExpectNear(kept(50), kFive);
  ExpectNear(NextTokenProbabilities(Logits({0.25, 0.25, 0.25, 0.25}), {.temperature = 1, .top_k = 3}),
             {1. / 3, 1. / 3, 1. / 3, 0});
}

TEST(Sampling, TopPIsTheSmallestSetThatReachesP) {
  const auto kept = [](double p) { return NextTokenProbabilities(Logits(kFive), {.temperature = 1, .top_p = p}); };
  ExpectNear(kept(1e-9), {0, 1, 0, 0, 0});
  ExpectNear(kept(0.39), {0, 1, 0, 0, 0});
  ExpectNear(kept(0.41), {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0});
  ExpectNear(kept(0.64), {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0});
  ExpectNear(kept(0.66), {0, 0.4 / 0.85, 0.2 / 0.85, 0.25 / 0.85, 0});
  ExpectNear(kept(0.96), kFive);
  ExpectNear(kept(1), kFive);
  // Reached exactly (numbers of binary fractions): no further token.
  ExpectNear(NextTokenProbabilities(std::vector<double>{std::log(2.), 0, 0}, {.temperature = 1, .top_p = 0.5}),
             {1, 0, 0});
  // After top_k: of the two that are left, the first has 0.4 / 0.65 = 0.615.
  ExpectNear(NextTokenProbabilities(Logits(kFive), {.temperature = 1, .top_k = 2, .top_p = 0.6}), {0, 1, 0, 0, 0});
  ExpectNear(NextTokenProbabilities(Logits(kFive), {.temperature = 1, .top_k = 2, .top_p = 0.62}),
             {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0});
}

TEST(Sampling, LogitsFarApartAndWrongOnes) {
  ExpectNear(NextTokenProbabilities(std::vector<double>{1e5, -1e5, 1e5}, {.temperature = 1}), {0.5, 0, 0.5});
  ExpectNear(NextTokenProbabilities(std::vector<double>{-INFINITY, 0}, {.temperature = 1, .top_k = 2}), {0, 1});
  EXPECT_THROW(NextTokenProbabilities(std::vector<double>{0, NAN}, {}), UserError);
  EXPECT_THROW(NextTokenProbabilities(std::vector<double>{0, INFINITY}, {}), UserError);
  EXPECT_THROW(NextTokenProbabilities(std::vector<double>{0, NAN}, {.temperature = 0}), UserError);
  for (const SamplingOptions& bad :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = NAN}, SamplingOptions{.top_k = -1},
        SamplingOptions{.top_p = 0}, SamplingOptions{.top_p = 1.1}, SamplingOptions{.top_p = NAN}})
    EXPECT_THROW(CheckSamplingOptions(bad), UserError);
  EXPECT_NO_THROW(CheckSamplingOptions({}));
}

// Pearson's statistic of the drawn tokens against the exact probabilities; the seeds are fixed, so it never fails by
// chance. 4 degrees of freedom: 18.5 is passed once in a thousand.
TEST(Sampling, DrawsFollowTheProbabilities) {
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 1}, SamplingOptions{.temperature = 2},
        SamplingOptions{.temperature = 1, .top_k = 3}, SamplingOptions{.temperature = 1, .top_p = 0.8}}) {
    const std::vector<double> p = NextTokenProbabilities(Logits(kFive), options);
    for (const int64_t sample : {0, 1}) {
      constexpr int kDraws = 20000;
      std::vector<int> counts(p.size(), 0);
      for (int i = 0; i < kDraws; ++i) ++counts[TokenAt(p, SamplingUniform(5, sample, i))];
      double statistic = 0;
      for (size_t i = 0; i < p.size(); ++i) {
        if (p[i] == 0) {
          EXPECT_EQ(counts[i], 0);
          continue;
        }
        const double expected = p[i] * kDraws;
        statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
      }
      EXPECT_LT(statistic, 18.5);
    }
  }
}

TEST(Sampling, UniformsBelongToSeedSampleAndPosition) {
  std::set<double> seen;
  double sum = 0;
  for (const uint64_t seed : {1, 2})
    for (const int64_t sample : {0, 1, 7})
      for (int64_t position = 0; position < 1000; ++position) {
        const double u = SamplingUniform(seed, sample, position);
        EXPECT_GT(u, 0);
        EXPECT_LT(u, 1);
        EXPECT_EQ(u, SamplingUniform(seed, sample, position));
        seen.insert(u);
        sum += u;
      }
  EXPECT_EQ(seen.size(), 6000u);
  EXPECT_NEAR(sum / 6000, 0.5, 0.015);
}

TEST(Sampling, TheEndsOfTheLine) {
  const std::vector<double> p = {0, 0.25, 0, 0.75, 0};
  EXPECT_EQ(TokenAt(p, 1e-300), 1);
  EXPECT_EQ(TokenAt(p, 0.2499), 1);
  EXPECT_EQ(TokenAt(p, 0.2501), 3);
  EXPECT_EQ(TokenAt(p, 1 - 1e-16), 3);
}

}  // namespace
}  // namespace penstock::session
