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

TEST(Profile, TheSampleWithMoreMeasurementsStays) {
  Profile profile = Two(), other;
  other.Add("a", {2, 99, 4});
  other.Add("a", {4, 77, 6});
  other.Add("b", {1, 1, 1});
  profile.Merge(other);
  EXPECT_EQ(profile.Find("a", 2)->seconds, 10);
  EXPECT_EQ(profile.Find("a", 4)->seconds, 77);
  EXPECT_EQ(profile.Find("b", 1)->seconds, 1);
  EXPECT_THROW(profile.Add("a", {0, 1, 1}), InternalError);
  EXPECT_THROW(profile.Add("a", {1, -1, 1}), InternalError);
}

}  // namespace
}  // namespace penstock::schedule
