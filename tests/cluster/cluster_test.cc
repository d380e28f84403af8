// Curves, links, and who talks to whom over what.
#include "cluster/cluster.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace penstock::cluster {
namespace {

Device MakeDevice(const std::string& name) {
  Device device;
  device.name = name;
  return device;
}

TEST(EfficiencyCurve, LinearInLogSizeAndFlatOutside) {
  const EfficiencyCurve curve({{1e6, 0.2}, {1e8, 0.6}, {1e9, 0.9}});
  EXPECT_DOUBLE_EQ(curve(1e6), 0.2);
  EXPECT_NEAR(curve(1e7), 0.4, 1e-12);  // half way in log size, not at 1e6 + (1e8 - 1e6) / 2
  EXPECT_DOUBLE_EQ(curve(1e8), 0.6);
  EXPECT_NEAR(curve(std::sqrt(1e17)), 0.75, 1e-12);
  EXPECT_DOUBLE_EQ(curve(1e9), 0.9);
  EXPECT_DOUBLE_EQ(curve(1), 0.2);
  EXPECT_DOUBLE_EQ(curve(0), 0.2);
  EXPECT_DOUBLE_EQ(curve(1e30), 0.9);
}

TEST(EfficiencyCurve, InRangeIsWhatWasStated) {
  const EfficiencyCurve curve({{10, 0.5}, {20, 0.6}});
  EXPECT_FALSE(curve.InRange(9.99));
  EXPECT_TRUE(curve.InRange(10));
  EXPECT_TRUE(curve.InRange(20));
  EXPECT_FALSE(curve.InRange(20.01));
  EXPECT_TRUE(EfficiencyCurve().InRange(1e30));
  EXPECT_EQ(EfficiencyCurve()(5), 1);
}

TEST(EfficiencyCurve, RefusesWhatIsNoCurve) {
  using Points = std::vector<EfficiencyCurve::Point>;
  EXPECT_THROW(EfficiencyCurve(Points{{0, 0.5}}), InternalError);
  EXPECT_THROW(EfficiencyCurve(Points{{2, 0.5}, {2, 0.6}}), InternalError);
  EXPECT_THROW(EfficiencyCurve(Points{{1, 0}}), InternalError);
  EXPECT_THROW(EfficiencyCurve(Points{{1, 1.01}}), InternalError);
  EXPECT_THROW(EfficiencyCurve(Points{{NAN, 0.5}}), InternalError);
}

TEST(Link, Seconds) {
  const Link link{
      .latency_seconds = 1e-6, .bytes_per_second = 1e9, .efficiency = EfficiencyCurve({{1, 0.5}, {4, 0.5}})};
  EXPECT_DOUBLE_EQ(link.Seconds(1000), 1e-6 + 1000 / 0.5e9);
  EXPECT_DOUBLE_EQ(link.Seconds(0), 1e-6);
  EXPECT_DOUBLE_EQ((Link{.latency_seconds = 2, .bytes_per_second = 0, .efficiency = {}}).Seconds(1e12), 2);
}

TEST(Device, FlopsNamesThePrecisionsThereAre) {
  Device device = MakeDevice("chip");
  device.flops_per_second = {{"fp32", 1e12}, {"fp16", 8e12}};
  EXPECT_EQ(device.flops("fp16"), 8e12);
  try {
    device.flops("bf16");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "device 'chip' has no peak for bf16; it has one for: fp16, fp32");
  }
}

Level MakeLevel(const std::string& name, int64_t size, double latency) {
  return {.name = name, .size = size, .link = {.latency_seconds = latency, .bytes_per_second = 1, .efficiency = {}}};
}

Cluster ThreeLevels() {
  Cluster cluster;
  cluster.name = "three";
  cluster.devices.push_back(MakeDevice("chip"));
  cluster.levels = {MakeLevel("node", 4, 1), MakeLevel("pod", 3, 2), MakeLevel("site", 2, 3)};
  return cluster;
}

TEST(Cluster, LevelBetweenIsTheLowestCommonGroup) {
  const Cluster cluster = ThreeLevels();
  ASSERT_EQ(cluster.num_devices(), 24);
  for (int64_t a = 0; a < 24; ++a) {
    for (int64_t b = 0; b < 24; ++b) {
      const int expected = a == b ? -1 : a / 4 == b / 4 ? 0 : a / 12 == b / 12 ? 1 : 2;
      ASSERT_EQ(cluster.LevelBetween(a, b), expected) << a << " " << b;
      ASSERT_EQ(cluster.LinkBetween(a, b).latency_seconds, expected + 1) << a << " " << b;
    }
  }
  EXPECT_EQ(cluster.LinkBetween(5, 5).Seconds(1e9), 0);
  EXPECT_THROW(cluster.LevelBetween(0, 24), UserError);
  EXPECT_THROW(cluster.LevelBetween(-1, 0), UserError);
  EXPECT_THROW(cluster.LinkBetween(23, 40), UserError);
}

TEST(Cluster, OverridesAreOfOneDirection) {
  Cluster cluster = ThreeLevels();
  cluster.overrides = {{0, 3, {.latency_seconds = 10, .bytes_per_second = 1, .efficiency = {}}},
                       {3, 1, {.latency_seconds = 11, .bytes_per_second = 1, .efficiency = {}}},
                       {3, 20, {.latency_seconds = 12, .bytes_per_second = 1, .efficiency = {}}}};
  EXPECT_EQ(cluster.LinkBetween(0, 3).latency_seconds, 10);
  EXPECT_EQ(cluster.LinkBetween(3, 0).latency_seconds, 1);
  EXPECT_EQ(cluster.LinkBetween(3, 1).latency_seconds, 11);
  EXPECT_EQ(cluster.LinkBetween(3, 20).latency_seconds, 12);
  EXPECT_EQ(cluster.LinkBetween(3, 21).latency_seconds, 3);
  EXPECT_EQ(cluster.LinkBetween(20, 3).latency_seconds, 3);
}

TEST(Cluster, DevicesByIndex) {
  Cluster cluster = ThreeLevels();
  EXPECT_EQ(cluster.device(23).name, "chip");
  EXPECT_THROW(cluster.device(24), UserError);
  EXPECT_THROW(cluster.device(-1), UserError);
  cluster.devices.push_back(MakeDevice("other"));
  cluster.device_of.assign(24, 0);
  cluster.device_of[7] = 1;
  EXPECT_EQ(cluster.device(7).name, "other");
  EXPECT_EQ(cluster.device(8).name, "chip");
}

TEST(Cluster, WithoutLevelsIsOneDevice) {
  Cluster cluster;
  cluster.devices.push_back(MakeDevice("chip"));
  EXPECT_EQ(cluster.num_devices(), 1);
  EXPECT_EQ(cluster.LevelBetween(0, 0), -1);
  EXPECT_THROW(cluster.LevelBetween(0, 1), UserError);
}

}  // namespace
}  // namespace penstock::cluster
