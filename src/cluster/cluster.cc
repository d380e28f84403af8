#include "cluster/cluster.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace penstock::cluster {

EfficiencyCurve::EfficiencyCurve(std::vector<Point> points) : points_(std::move(points)) {
  for (size_t i = 0; i < points_.size(); ++i) {
    PENSTOCK_CHECK(points_[i].size > (i ? points_[i - 1].size : 0), "efficiency curve: sizes ascend from above 0");
    PENSTOCK_CHECK(points_[i].efficiency > 0 && points_[i].efficiency <= 1, "efficiency curve: {} is not in (0, 1]",
                   points_[i].efficiency);
    logs_.push_back(std::log(points_[i].size));
  }
}

double EfficiencyCurve::operator()(double size) const {
  if (points_.empty()) return 1;
  if (!(size > points_.front().size)) return points_.front().efficiency;
  if (size >= points_.back().size) return points_.back().efficiency;
  const auto above =
      std::upper_bound(points_.begin(), points_.end(), size, [](double s, const Point& p) { return s < p.size; });
  const size_t i = static_cast<size_t>(above - points_.begin());
  const double share = (std::log(size) - logs_[i - 1]) / (logs_[i] - logs_[i - 1]);
  return points_[i - 1].efficiency + share * (points_[i].efficiency - points_[i - 1].efficiency);
}

bool EfficiencyCurve::InRange(double size) const {
  return points_.empty() || (size >= points_.front().size && size <= points_.back().size);
}

double Device::flops(std::string_view precision) const {
  const auto found = flops_per_second.find(precision);
  if (found != flops_per_second.end()) return found->second;
  std::vector<std::string_view> known;
  for (const auto& [p, rate] : flops_per_second) known.push_back(p);
  throw UserError("device '{}' has no peak for {}; it has one for: {}", name, precision, fmt::join(known, ", "));
}

double Link::Seconds(double bytes) const {
  if (bytes_per_second == 0 || bytes <= 0) return latency_seconds;
  return latency_seconds + bytes / (bytes_per_second * efficiency(bytes));
}

int64_t Cluster::num_devices() const {
  int64_t devices = 1;
  for (const Level& level : levels) devices *= level.size;
  return devices;
}

const Device& Cluster::device(int64_t index) const {
  if (index < 0 || index >= num_devices())
    throw UserError("cluster '{}' has no device {}; it has {}, numbered from 0", name, index, num_devices());
  const int32_t type = device_of.empty() ? 0 : device_of.at(static_cast<size_t>(index));
  return devices.at(static_cast<size_t>(type));
}

int Cluster::LevelBetween(int64_t a, int64_t b) const {
  if (a == b) return -1;
  int64_t group_a = a, group_b = b;
  for (size_t i = 0; i < levels.size(); ++i) {
    group_a /= levels[i].size;
    group_b /= levels[i].size;
    if (group_a == group_b && a >= 0 && b >= 0) return static_cast<int>(i);
  }
  throw UserError("cluster '{}' has no devices {} and {}; it has {}, numbered from 0", name, a, b, num_devices());
}

const Link& Cluster::LinkBetween(int64_t from, int64_t to) const {
  static const Link kSelf;
  if (from == to) return kSelf;
  if (!overrides.empty()) {
    const auto found =
        std::lower_bound(overrides.begin(), overrides.end(), std::pair(from, to),
                         [](const PairLink& link, const auto& pair) { return std::pair(link.from, link.to) < pair; });
    if (found != overrides.end() && found->from == from && found->to == to) return found->link;
  }
  return levels[static_cast<size_t>(LevelBetween(from, to))].link;
}

}  // namespace penstock::cluster
