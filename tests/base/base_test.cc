// Errors, registry, nearest names.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/registry.h"

namespace penstock {
namespace {

TEST(Error, KindsHaveTheirExitCodes) {
  EXPECT_EQ(UserError("key '{}' is unknown", "x").exit_code(), 2);
  EXPECT_STREQ(UserError("key '{}' is unknown", "x").what(), "key 'x' is unknown");
  EXPECT_EQ(WorldError("disk full").exit_code(), 1);
  EXPECT_EQ(PeerLost(3, "rank 3 is silent").rank(), 3);
  EXPECT_EQ(InternalError("bug").exit_code(), 1);
}

TEST(Error, BracesInAPlainMessageAreKept) {
  const std::string text = "line {1}";
  EXPECT_STREQ(UserError(text).what(), "line {1}");
}

TEST(Error, CheckNamesFileConditionAndOperands) {
  EXPECT_NO_THROW(PENSTOCK_CHECK(1 + 1 == 2));
  try {
    const int left = 4;
    PENSTOCK_CHECK_EQ(left, 5);
    FAIL();
  } catch (const InternalError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("base_test.cc"), std::string::npos) << what;
    EXPECT_NE(what.find("left == 5"), std::string::npos) << what;
    EXPECT_NE(what.find("4 against 5"), std::string::npos) << what;
  }
  try {
    PENSTOCK_CHECK(false, "rank {}", 7);
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("rank 7"), std::string::npos) << e.what();
  }
}

struct Fruit {
  static constexpr const char* kRegistryName = "fruit";
  std::string name;
  int weight = 0;
};
const Register<Fruit> kPear{{"pear", 2}};
const Register<Fruit> kApple{{"apple", 1}};

TEST(Registry, FindsByNameAndIteratesInOrder) {
  EXPECT_EQ(Registry<Fruit>::Find("pear").weight, 2);
  EXPECT_EQ(Registry<Fruit>::Names(), (std::vector<std::string>{"apple", "pear"}));
  EXPECT_TRUE(Registry<Fruit>::Has("apple"));
  EXPECT_FALSE(Registry<Fruit>::Has("plum"));
}

TEST(Registry, UnknownNameIsTheUsersErrorAndNamesTheNearest) {
  try {
    Registry<Fruit>::Find("aple");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "there is no fruit named 'aple'; did you mean 'apple'?");
  }
  EXPECT_THROW(Registry<Fruit>::Add({"pear", 3}), InternalError);
}

TEST(Nearest, Distance) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("gpipe", "gpiep"), 1) << "an adjacent swap is one edit";
  EXPECT_EQ(EditDistance("same", "same"), 0);
}

TEST(Nearest, SuggestsOrLists) {
  EXPECT_EQ(DidYouMean("gpip", {"gpipe", "1f1b"}), "; did you mean 'gpipe'?");
  EXPECT_EQ(DidYouMean("something", {"gpipe", "1f1b"}), "; known: gpipe, 1f1b");
  EXPECT_EQ(DidYouMean("x", {}), "");
  const std::vector<std::string> many(30, "quite-a-long-name");
  const std::string shown = DidYouMean("z", many);
  EXPECT_EQ(shown.substr(shown.size() - 5), ", ...");
}

}  // namespace
}  // namespace penstock
