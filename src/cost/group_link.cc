#include "cost/group_link.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace penstock::cost {

GroupLink LinkOfGroup(const cluster::Cluster& cluster, const std::vector<int64_t>& devices) {
  GroupLink group;
  group.members = static_cast<int64_t>(devices.size());
  PENSTOCK_CHECK(std::is_sorted(devices.begin(), devices.end()) && !devices.empty());
  if (devices.size() == 1) return group;
  double slowest = std::numeric_limits<double>::infinity();
  int64_t size = 1;                                   // devices of a group below the level
  auto below = static_cast<int64_t>(devices.size());  // groups below the level that have members
  for (const cluster::Level& level : cluster.levels) {
    const int64_t size_here = size * level.size;
    int64_t here = 1;  // groups of this level that have members
    for (size_t i = 1; i < devices.size(); ++i) here += devices[i] / size_here != devices[i - 1] / size_here;
    if (below > here) {  // some members meet over this level
      const int64_t members_per_group = std::max<int64_t>(1, group.members / below);
      double bandwidth = level.link.bytes_per_second * static_cast<double>(members_per_group);
      if (level.group_bytes_per_second > 0 && size > 1) bandwidth = std::min(bandwidth, level.group_bytes_per_second);
      if (level.link.bytes_per_second > 0 && bandwidth < slowest) {
        slowest = bandwidth;
        group.efficiency = &level.link.efficiency;
      }
      // Levels above the devices are crossed along trees, their latency counts by the logarithm.
      const auto hops = static_cast<double>(below) / static_cast<double>(here);
      group.latency_seconds += level.link.latency_seconds * (size == 1 ? hops - 1 : std::ceil(std::log2(hops)));
    }
    below = here;
    size = size_here;
    if (here == 1) break;
  }
  // A pair with a link of its own that are neighbours in the ring: never faster than it.
  for (size_t i = 0; i < devices.size() && !cluster.overrides.empty(); ++i) {
    const int64_t from = devices[i], to = devices[(i + 1) % devices.size()];
    const cluster::Link& link = cluster.LinkBetween(from, to);
    if (&link == &cluster.levels[cluster.LevelBetween(from, to)].link) continue;
    group.latency_seconds += std::max(0.0, link.latency_seconds - cluster.levels[0].link.latency_seconds);
    if (link.bytes_per_second <= 0 || link.bytes_per_second >= slowest) continue;
    slowest = link.bytes_per_second;
    group.efficiency = &link.efficiency;
  }
  group.bytes_per_second = std::isinf(slowest) ? 0 : slowest;
  return group;
}

namespace {

// `passes` times (n - 1) / n of the bytes.
Price Ring(const GroupLink& link, double bytes, int passes) {
  if (link.members < 2) return {};
  Price price{passes * link.latency_seconds, false};
  if (link.bytes_per_second <= 0) return price;
  const auto n = static_cast<double>(link.members);
  const double share = link.efficiency == nullptr ? 1 : (*link.efficiency)(bytes);
  price.extrapolated = link.efficiency != nullptr && !link.efficiency->InRange(bytes);
  price.seconds += passes * bytes * (n - 1) / n / (link.bytes_per_second * share);
  return price;
}

}  // namespace

Price AllGather(const GroupLink& link, double bytes) { return Ring(link, bytes, 1); }
Price AllReduce(const GroupLink& link, double bytes) { return Ring(link, bytes, 2); }
Price SmallExchange(const GroupLink& link) { return {link.latency_seconds, false}; }

}  // namespace penstock::cost
