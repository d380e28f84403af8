// src/cluster/resize.h
//
// The same machine with more or fewer devices.
#pragma once

#include <cstdint>

#include "cluster/cluster.h"

namespace penstock::cluster {

// `cluster` with the smallest number of devices that is at least `devices` and fills whole groups: the lowest level
// that can hold them gets as many groups as that takes, and the levels above it hold one group each; the topmost level
// may grow beyond its size. So 8 x 64 x 2 becomes 8 x 2 x 1 for 12 devices, 8 x 64 x 2 for 520, and 8 x 64 x 4 for
// 2000. Prices of links stay what they were: a larger network is taken to be as good as the one in the file. Overrides
// of devices that are gone go with them. The source of a changed size says so. UserError when devices < 1 or above
// kMaxDevices (cluster/read.h), or when the cluster mixes device types.
Cluster Resized(const Cluster& cluster, int64_t devices);

}  // namespace penstock::cluster
