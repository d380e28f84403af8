#include "comm/shards.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace penstock::comm {
namespace {

TEST(ShardBoundsTest, CoversEverythingOnAlignedBorders) {
  EXPECT_EQ(ShardBounds(10, 3), (std::vector<int64_t>{0, 4, 7, 10}));
  EXPECT_EQ(ShardBounds(10, 3, 4), (std::vector<int64_t>{0, 4, 8, 10}));
  EXPECT_EQ(ShardBounds(3, 4, 4), (std::vector<int64_t>{0, 3, 3, 3, 3}));
  EXPECT_EQ(ShardBounds(0, 2), (std::vector<int64_t>{0, 0, 0}));
  for (int64_t n = 0; n < 70; ++n) {
    for (int parts = 1; parts <= 8; ++parts) {
      for (const int64_t align : {1, 3, 16}) {
        const auto bounds = ShardBounds(n, parts, align);
        CheckShardBounds(bounds, n, parts);
        for (int i = 1; i < parts; ++i) EXPECT_TRUE(bounds[i] % align == 0 || bounds[i] == n);
      }
    }
  }
}

TEST(ShardBoundsTest, RefusesNonsense) {
  EXPECT_THROW(CheckShardBounds({}, 0, 1), InternalError);
  EXPECT_THROW(CheckShardBounds({0, 3, 2}, 2, 2), InternalError);
  EXPECT_THROW(CheckShardBounds({1, 2}, 2, 1), InternalError);
  EXPECT_THROW(ShardBounds(4, 0), InternalError);
}

}  // namespace
}  // namespace penstock::comm
