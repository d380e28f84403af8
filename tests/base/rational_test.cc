#include "base/rational.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "base/error.h"

namespace penstock {
namespace {

TEST(Rational, LowestTermsPositiveDenominator) {
  EXPECT_EQ(Rational(6, 4), Rational(3, 2));
  EXPECT_EQ(Rational(3, -6).ToString(), "-1/2");
  EXPECT_EQ(Rational(-3, -6).ToString(), "1/2");
  EXPECT_EQ(Rational(0, -7).denominator(), 1);
  EXPECT_EQ(Rational(57, 2).ToString(), "57/2");
  EXPECT_EQ(Rational(8, 2).ToString(), "4");
  EXPECT_THROW(Rational(1, 0), InternalError);
}

TEST(Rational, Arithmetic) {
  EXPECT_EQ(Rational(1, 3) + Rational(1, 6), Rational(1, 2));
  EXPECT_EQ(Rational(1, 3) - Rational(1, 3), Rational(0));
  EXPECT_EQ(Rational(2, 3) * Rational(3, 4), Rational(1, 2));
  EXPECT_EQ(Rational(1, 2) / Rational(-1, 4), Rational(-2));
  EXPECT_LT(Rational(1, 3), Rational(34, 100));
  EXPECT_GT(Rational(-1, 3), Rational(-1, 2));
  EXPECT_THROW(Rational(1) / Rational(0), InternalError);
}

TEST(Rational, FieldLawsOnRandomValues) {
  std::mt19937 rng(1);
  std::uniform_int_distribution<int> n(-50, 50), d(1, 50);
  for (int i = 0; i < 1000; ++i) {
    const Rational a(n(rng), d(rng)), b(n(rng), d(rng)), c(n(rng), d(rng));
    EXPECT_EQ(a * (b + c), a * b + a * c);
    EXPECT_EQ((a + b) - b, a);
    EXPECT_EQ(a < b, a.ToDouble() < b.ToDouble());
  }
}

TEST(Rational, OverflowIsCaughtNotWrapped) {
  const Rational big(std::numeric_limits<int64_t>::max());
  EXPECT_THROW(big + Rational(1), InternalError);
  EXPECT_THROW(big * big, InternalError);
  EXPECT_LT(Rational(std::numeric_limits<int64_t>::max() - 1), big) << "comparison has room for the products";
}

TEST(Rational, Parse) {
  EXPECT_EQ(Rational::Parse("3"), Rational(3));
  EXPECT_EQ(Rational::Parse("-1/2"), Rational(-1, 2));
  EXPECT_EQ(Rational::Parse("0.25"), Rational(1, 4));
  EXPECT_EQ(Rational::Parse(".5"), Rational(1, 2));
  for (const char* bad : {"", "-", "1/0", "x", "1/", "/2", ".", "1e3", "0.1.2", " 1", "--1", "123456789012345678901"})
    EXPECT_THROW(Rational::Parse(bad), UserError) << bad;
}

}  // namespace
}  // namespace penstock
