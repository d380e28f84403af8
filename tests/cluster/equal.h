// Are two clusters the same, but for the file?
#pragma once

#include <gtest/gtest.h>

#include "cluster/cluster.h"

namespace penstock::cluster {

inline void ExpectEqual(const EfficiencyCurve& a, const EfficiencyCurve& b) {
  ASSERT_EQ(a.points().size(), b.points().size());
  for (size_t i = 0; i < a.points().size(); ++i) {
    EXPECT_EQ(a.points()[i].size, b.points()[i].size);
    EXPECT_EQ(a.points()[i].efficiency, b.points()[i].efficiency);
  }
}

inline void ExpectEqual(const Link& a, const Link& b) {
  EXPECT_EQ(a.latency_seconds, b.latency_seconds);
  EXPECT_EQ(a.bytes_per_second, b.bytes_per_second);
  ExpectEqual(a.efficiency, b.efficiency);
}

inline void ExpectEqual(const Cluster& a, const Cluster& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.summary, b.summary);
  EXPECT_EQ(a.calibrated, b.calibrated);
  EXPECT_EQ(a.sources, b.sources);
  EXPECT_EQ(a.device_of, b.device_of);
  ASSERT_EQ(a.devices.size(), b.devices.size());
  for (size_t i = 0; i < a.devices.size(); ++i) {
    const Device &x = a.devices[i], &y = b.devices[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.summary, y.summary);
    EXPECT_EQ(x.flops_per_second, y.flops_per_second);
    EXPECT_EQ(x.memory_bytes_per_second, y.memory_bytes_per_second);
    EXPECT_EQ(x.memory_bytes, y.memory_bytes);
    EXPECT_EQ(x.launch_seconds, y.launch_seconds);
    EXPECT_EQ(x.layer_traffic, y.layer_traffic);
    for (size_t o = 0; o < kOperationCount; ++o) ExpectEqual(x.efficiency[o], y.efficiency[o]);
    EXPECT_EQ(x.host_memory_bytes, y.host_memory_bytes);
    EXPECT_EQ(x.host_bytes_per_second, y.host_bytes_per_second);
    EXPECT_EQ(x.disk_bytes_per_second, y.disk_bytes_per_second);
    EXPECT_EQ(x.price_per_hour, y.price_per_hour);
    EXPECT_EQ(x.price_currency, y.price_currency);
    EXPECT_EQ(x.cores, y.cores);
  }
  ASSERT_EQ(a.levels.size(), b.levels.size());
  for (size_t i = 0; i < a.levels.size(); ++i) {
    EXPECT_EQ(a.levels[i].name, b.levels[i].name);
    EXPECT_EQ(a.levels[i].size, b.levels[i].size);
    EXPECT_EQ(a.levels[i].group_bytes_per_second, b.levels[i].group_bytes_per_second);
    ExpectEqual(a.levels[i].link, b.levels[i].link);
  }
  ASSERT_EQ(a.overrides.size(), b.overrides.size());
  for (size_t i = 0; i < a.overrides.size(); ++i) {
    EXPECT_EQ(a.overrides[i].from, b.overrides[i].from);
    EXPECT_EQ(a.overrides[i].to, b.overrides[i].to);
    ExpectEqual(a.overrides[i].link, b.overrides[i].link);
  }
}

}  // namespace penstock::cluster
