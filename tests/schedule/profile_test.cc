#include "schedule/profile.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace penstock::schedule {
namespace {

Profile Two() {
  Profile profile;
  profile.Add("a", {2, 10, 5});
  profile.Add("a", {4, 14, 5});
  return profile;
}

TEST(Profile, MeasuredSizesAreExactAndThoseBetweenAreOnTheLine) {
  const Profile profile = Two();
  EXPECT_EQ(profile.Find("a", 2)->seconds, 10);
  EXPECT_EQ(profile.Find("a", 3)->seconds, 12);
  EXPECT_EQ(profile.Find("a", 4)->seconds, 14);
  for (const double size : {2.0, 3.0, 4.0}) EXPECT_FALSE(profile.Find("a", size)->extrapolated);
}

TEST(Profile, OutsideIsInProportionAndMarked) {
  const Profile profile = Two();
  EXPECT_EQ(profile.Find("a", 1)->seconds, 5);
  EXPECT_EQ(profile.Find("a", 8)->seconds, 28);
  for (const double size : {1.0, 8.0}) EXPECT_TRUE(profile.Find("a", size)->extrapolated);
  EXPECT_FALSE(profile.Find("b", 1));
}

TEST(Profile, MeasurementsOfOneSizeArePooled) {
  Profile profile = Two(), other;
  other.Add("a", {2, 40, 10});
  other.Add("b", {1, 1, 1});
  profile.Merge(other);
  EXPECT_EQ(profile.Find("a", 2)->seconds, 30);  // 5 of 10, 10 of 40
  EXPECT_EQ(profile.Find("a", 4)->seconds, 14);
  EXPECT_EQ(profile.Find("b", 1)->seconds, 1);
  EXPECT_EQ(profile.subjects().at("a")[0].count, 15);
  EXPECT_THROW(profile.Add("a", {0, 1, 1}), InternalError);
  EXPECT_THROW(profile.Add("a", {1, -1, 1}), InternalError);
  EXPECT_THROW(profile.Add("a", {1, 1, 0}), InternalError);
  EXPECT_THROW(profile.Add("a", {1, 1, 1, 0}), InternalError);
}

TEST(Profile, RanksAtOnceAreADimensionOfTheirOwn) {
  Profile profile = Two();
  profile.Add("a", {2, 12, 5, 4});
  EXPECT_EQ(profile.Find("a", 2, 1)->seconds, 10);
  EXPECT_EQ(profile.Find("a", 2, 4)->seconds, 12);
  EXPECT_EQ(profile.Find("a", 2, 2)->seconds, 10 + 2.0 / 3);
  for (const int ranks : {1, 2, 4}) EXPECT_FALSE(profile.Find("a", 2, ranks)->extrapolated) << ranks;
  // Beyond what was measured the nearest, as it is.
  EXPECT_EQ(profile.Find("a", 2, 8)->seconds, 12);
  EXPECT_TRUE(profile.Find("a", 2, 8)->extrapolated);
  // Four ranks were measured at one size only.
  EXPECT_EQ(profile.Find("a", 4, 4)->seconds, 24);
  EXPECT_TRUE(profile.Find("a", 4, 4)->extrapolated);
  EXPECT_TRUE(profile.Find("a", 4, 2)->extrapolated);
}

}  // namespace
}  // namespace penstock::schedule
