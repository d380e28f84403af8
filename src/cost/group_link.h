// src/cost/group_link.h
//
// What a collective over a set of devices sees of a hierarchy of links: its number of members, and the bandwidth and
// latency of a ring that visits the groups of each level one after the other. Where k members of a group at a level go
// out together, each over a way of its own (network cards of a node), the ring has k of them beside each other, up to
// what the group has; so a ring inside nodes of 8 with 8 cards is bound by the node's inner link or by all 8 cards.
// Neighbours in the ring (devices ascending) that have a link of their own ([[override]]) bound it, too.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster.h"
#include "cost/price.h"

namespace penstock::cost {

struct GroupLink {
  int64_t members = 1;
  double bytes_per_second = 0;                           // of the ring; 0: infinite
  double latency_seconds = 0;                            // of all steps of one pass around: see AllGather
  const cluster::EfficiencyCurve* efficiency = nullptr;  // of the slowest level, by bytes of a step; null: 1
  bool operator==(const GroupLink&) const = default;
};

// Of the devices, ascending. O(devices).
GroupLink LinkOfGroup(const cluster::Cluster& cluster, const std::vector<int64_t>& devices);

// Ring all-gather or reduce-scatter of `bytes` in all (before or after, the larger side): (n - 1) / n x bytes.
Price AllGather(const GroupLink& link, double bytes);
// Reduce-scatter, then all-gather.
Price AllReduce(const GroupLink& link, double bytes);
// Something small to everybody: latency alone.
Price SmallExchange(const GroupLink& link);

}  // namespace penstock::cost
