#include "base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

TEST(JsonDepth, CountsBracketsOutsideOfTexts) {
  EXPECT_FALSE(IsNestedDeeper("", 0));
  EXPECT_FALSE(IsNestedDeeper("7", 0));
  EXPECT_TRUE(IsNestedDeeper("[]", 0));
  EXPECT_FALSE(IsNestedDeeper(R"([{"a": 1}, {"b": [2]}, [], {}])", 3));
  EXPECT_TRUE(IsNestedDeeper(R"([{"a": 1}, {"b": [2]}, [], {}])", 2));
  EXPECT_FALSE(IsNestedDeeper(R"(["[[[{{{", "\"[[[", "\\", []])", 2));
  EXPECT_TRUE(IsNestedDeeper(R"(["\\", [[]]])", 2));
  EXPECT_FALSE(IsNestedDeeper("\"[[[[", 1));
  EXPECT_FALSE(IsNestedDeeper("\"\\", 0));
  EXPECT_FALSE(IsNestedDeeper("]]]][[", 1));  // no JSON, and the parser says so at the first byte
  EXPECT_FALSE(IsNestedDeeper(std::string(64, '[')));
  EXPECT_TRUE(IsNestedDeeper(std::string(65, '[')));
}

}  // namespace
}  // namespace penstock
