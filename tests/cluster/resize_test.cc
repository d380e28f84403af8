#include "cluster/resize.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/read.h"

namespace penstock::cluster {
namespace {

std::vector<int64_t> Sizes(const Cluster& cluster) {
  std::vector<int64_t> sizes;
  for (const Level& level : cluster.levels) sizes.push_back(level.size);
  return sizes;
}

TEST(Resized, FillsWholeGroupsFromBelow) {
  const Cluster cluster = ReadCluster("two-sites");
  using Expected = std::vector<int64_t>;
  ASSERT_EQ(Sizes(cluster), (Expected{8, 32, 2}));
  EXPECT_EQ(Sizes(Resized(cluster, 1)), (Expected{1, 1, 1}));
  EXPECT_EQ(Sizes(Resized(cluster, 3)), (Expected{3, 1, 1}));
  EXPECT_EQ(Sizes(Resized(cluster, 8)), (Expected{8, 1, 1}));
  EXPECT_EQ(Sizes(Resized(cluster, 12)), (Expected{8, 2, 1}));
  EXPECT_EQ(Sizes(Resized(cluster, 256)), (Expected{8, 32, 1}));
  EXPECT_EQ(Sizes(Resized(cluster, 257)), (Expected{8, 32, 2}));
  EXPECT_EQ(Sizes(Resized(cluster, 512)), (Expected{8, 32, 2}));
  EXPECT_EQ(Sizes(Resized(cluster, 1000)), (Expected{8, 32, 4}));
}

TEST(Resized, SmallestThatHolds) {
  const Cluster cluster = ReadCluster("a100-80");
  for (int64_t devices = 1; devices < 100; ++devices)
    EXPECT_EQ(Resized(cluster, devices).num_devices(), devices <= 8 ? devices : (devices + 7) / 8 * 8) << devices;
}

TEST(Resized, AHundredThousandDevicesAndAMillionHoldNothingPerDevice) {
  for (const int64_t devices : {int64_t{100'000}, int64_t{1'000'000}}) {
    const Cluster cluster = Resized(ReadCluster("h100"), devices);
    EXPECT_EQ(cluster.num_devices(), devices);
    EXPECT_TRUE(cluster.device_of.empty());
    EXPECT_EQ(cluster.device(devices - 1).name, "h100");
    EXPECT_EQ(cluster.LevelBetween(0, devices - 1), 1);
    EXPECT_EQ(cluster.LevelBetween(devices - 8, devices - 1), 0);
    EXPECT_THROW(cluster.device(devices), UserError);
  }
}

TEST(Resized, SaysSoInTheSourceOnce) {
  const Cluster once = Resized(ReadCluster("a100-80"), 64);
  const std::string source = once.sources.at("level.cluster.size");
  EXPECT_EQ(source.rfind("resized; 560 in the file: ", 0), 0u) << source;
  EXPECT_EQ(once.sources.at("level.node.size").rfind("resized", 0), std::string::npos);
  EXPECT_EQ(Resized(once, 32).sources.at("level.cluster.size"), source);
  EXPECT_EQ(ParseCluster(PrintCluster(once), "x").num_devices(), 64);
}

TEST(Resized, DropsOverridesOfDevicesThatAreGone) {
  Cluster cluster = ReadCluster("a100-80");
  cluster.overrides = {{0, 5, {}}, {0, 17, {}}};
  const Cluster resized = Resized(cluster, 16);
  ASSERT_EQ(resized.overrides.size(), 1u);
  EXPECT_EQ(resized.overrides[0].to, 5);
}

TEST(Resized, RefusesMixturesAndSizesOutOfBounds) {
  Cluster cluster = ReadCluster("a100-80");
  EXPECT_THROW(Resized(cluster, 0), UserError);
  EXPECT_THROW(Resized(cluster, kMaxDevices + 1), UserError);
  cluster.device_of.assign(static_cast<size_t>(cluster.num_devices()), 0);
  EXPECT_EQ(Resized(cluster, 16).device_of.size(), 16u);
  cluster.devices.push_back(cluster.devices[0]);
  cluster.device_of[3] = 1;
  EXPECT_THROW(Resized(cluster, 16), UserError);
  cluster.levels.clear();
  cluster.device_of.clear();
  EXPECT_THROW(Resized(cluster, 2), UserError);
}

}  // namespace
}  // namespace penstock::cluster
