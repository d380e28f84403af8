// A cluster whose prices can be computed by hand: 1 Mflop/s, 1 MB/s of memory, no launch time, no shares of peaks.
#pragma once

#include "cluster/cluster.h"

namespace penstock::cost {

inline cluster::Device SlowDevice() {
  cluster::Device device;
  device.name = "slow";
  device.flops_per_second = {{"bf16", 1e6}, {"fp32", 1e6}};
  device.memory_bytes_per_second = 1e6;
  device.memory_bytes = int64_t{1} << 40;
  return device;
}

// Nodes of 4 at 100 B/s and 1 s, 4 of them at 10 B/s and 2 s.
inline cluster::Cluster SlowCluster() {
  cluster::Cluster cluster;
  cluster.name = "slow";
  cluster.devices = {SlowDevice()};
  cluster.levels.resize(2);
  cluster.levels[0] = {
      .name = "node", .size = 4, .link = {.latency_seconds = 1, .bytes_per_second = 100, .efficiency = {}}};
  cluster.levels[1] = {
      .name = "all", .size = 4, .link = {.latency_seconds = 2, .bytes_per_second = 10, .efficiency = {}}};
  return cluster;
}

}  // namespace penstock::cost
