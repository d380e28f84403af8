#include "cluster/resize.h"

#include <algorithm>

#include "base/error.h"
#include "cluster/read.h"

namespace penstock::cluster {
namespace {

constexpr std::string_view kResized = "resized";

void Resize(Cluster& cluster, Level& level, int64_t size) {
  if (level.size == size) return;
  std::string& source = cluster.sources["level." + level.name + ".size"];
  if (source.rfind(kResized, 0) != 0) source = fmt::format("{}; {} in the file: {}", kResized, level.size, source);
  level.size = size;
}

}  // namespace

Cluster Resized(const Cluster& cluster, int64_t devices) {
  if (devices < 1 || devices > kMaxDevices)
    throw UserError("cluster '{}' cannot have {} devices: at least 1, at most {}", cluster.name, devices, kMaxDevices);
  if (std::adjacent_find(cluster.device_of.begin(), cluster.device_of.end(), std::not_equal_to<>()) !=
      cluster.device_of.end())
    throw UserError(
        "cluster '{}' mixes device types, so {} of its devices are not determined; write a file of that size",
        cluster.name, devices);
  Cluster out = cluster;
  if (out.levels.empty() && devices > 1)
    throw UserError("cluster '{}' is one device without a network; add a [[level]] to its file", cluster.name);
  int64_t groups = devices;  // of the level below that are needed
  for (size_t i = 0; i < out.levels.size(); ++i) {
    Level& level = out.levels[i];
    if (i + 1 == out.levels.size() || groups <= level.size) Resize(out, level, groups);
    groups = (groups + level.size - 1) / level.size;
  }
  const int64_t count = out.num_devices();
  if (count > kMaxDevices)
    throw UserError("cluster '{}' cannot have {} devices in whole groups: {} are more than {}", cluster.name, devices,
                    count, kMaxDevices);
  if (!out.device_of.empty())
    out.device_of.assign(static_cast<size_t>(count), cluster.device_of.empty() ? 0 : cluster.device_of[0]);
  std::erase_if(out.overrides, [&](const PairLink& pair) { return pair.from >= count || pair.to >= count; });
  return out;
}

}  // namespace penstock::cluster
