// Rings over a hierarchy, by hand.
#include "cost/group_link.h"

#include <gtest/gtest.h>

#include "cost/devices.h"

namespace penstock::cost {
namespace {

TEST(GroupLink, OneDeviceTalksToNobody) {
  const cluster::Cluster cluster = SlowCluster();
  const GroupLink link = LinkOfGroup(cluster, {5});
  EXPECT_EQ(link.members, 1);
  EXPECT_EQ(AllReduce(link, 1e6).seconds, 0);
}

TEST(GroupLink, InsideANode) {
  const cluster::Cluster cluster = SlowCluster();
  const GroupLink link = LinkOfGroup(cluster, {0, 1, 2, 3});
  EXPECT_EQ(link.bytes_per_second, 100);
  EXPECT_EQ(link.latency_seconds, 3);  // three steps
  // 3/4 of 400 bytes at 100 B/s, after the latency; an all-reduce is two passes.
  EXPECT_DOUBLE_EQ(AllGather(link, 400).seconds, 3 + 3.0);
  EXPECT_DOUBLE_EQ(AllReduce(link, 400).seconds, 2 * (3 + 3.0));
  EXPECT_DOUBLE_EQ(SmallExchange(link).seconds, 3);
}

TEST(GroupLink, BetweenNodesOneMemberEach) {
  const cluster::Cluster cluster = SlowCluster();
  const GroupLink link = LinkOfGroup(cluster, {0, 4, 8, 12});
  EXPECT_EQ(link.bytes_per_second, 10);
  EXPECT_EQ(link.latency_seconds, 4);  // two steps of a tree
  EXPECT_DOUBLE_EQ(AllGather(link, 40).seconds, 4 + 3.0);
}

TEST(GroupLink, MembersOfANodeHaveTheirOwnWaysOut) {
  cluster::Cluster cluster = SlowCluster();
  EXPECT_EQ(LinkOfGroup(cluster, {0, 1, 4, 5}).bytes_per_second, 20);
  cluster.levels[1].group_bytes_per_second = 15;  // unless the node has less in all
  EXPECT_EQ(LinkOfGroup(cluster, {0, 1, 4, 5}).bytes_per_second, 15);
}

// A curve of 1 kB to 1 GB says nothing of 7 bytes and of 40 GB.
TEST(GroupLink, WhatIsOutsideTheCurveIsMarked) {
  cluster::Cluster cluster = SlowCluster();
  cluster.levels[0].link.efficiency = cluster::EfficiencyCurve({{1e3, 0.5}, {1e9, 1.0}});
  const GroupLink link = LinkOfGroup(cluster, {0, 1, 2, 3});
  EXPECT_TRUE(AllReduce(link, 7).extrapolated);
  EXPECT_FALSE(AllReduce(link, 1e3).extrapolated);
  EXPECT_FALSE(AllReduce(link, 1e9).extrapolated);
  EXPECT_TRUE(AllReduce(link, 40e9).extrapolated);
  EXPECT_DOUBLE_EQ(AllReduce(link, 7).seconds, 2 * (3 + 0.75 * 7 / 50));  // as at the nearest end
}

}  // namespace
}  // namespace penstock::cost
