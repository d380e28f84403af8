#include "cluster/file/fields.h"

#include <fmt/format.h>

#include "cluster/read.h"

namespace penstock::cluster {
namespace {

using Unit = NumberField::Unit;

// Far above anything built; below what would overflow.
constexpr double kMaxRate = 1e18;
constexpr double kMaxBytes = 1e18;
constexpr double kMaxSeconds = 3600;

// A table must state its link; 0 bytes per second would mean an infinitely fast one.
void AddLink(Fields& fields, Link& link) {
  fields.numbers.push_back({"latency_seconds", &link.latency_seconds, Unit::kPlain, true, 0, kMaxSeconds});
  fields.numbers.push_back({"bytes_per_second", &link.bytes_per_second, Unit::kBytesPerSecond, true, 0, kMaxRate});
  fields.curves.push_back({"efficiency", &link.efficiency});
}

}  // namespace

Fields FieldsOf(Device& device) {
  Fields fields;
  fields.numbers = {
      {"memory_bytes_per_second", &device.memory_bytes_per_second, Unit::kBytesPerSecond, true, 1, kMaxRate},
      {"memory_bytes", &device.memory_bytes, Unit::kBytes, true, 1, kMaxBytes},
      {"launch_seconds", &device.launch_seconds, Unit::kPlain, false, 0, kMaxSeconds},
      {"layer_traffic", &device.layer_traffic, Unit::kPlain, false, 0, 1e4},
      {"host_memory_bytes", &device.host_memory_bytes, Unit::kBytes, false, 0, kMaxBytes},
      {"host_bytes_per_second", &device.host_bytes_per_second, Unit::kBytesPerSecond, false, 0, kMaxRate},
      {"disk_bytes_per_second", &device.disk_bytes_per_second, Unit::kBytesPerSecond, false, 0, kMaxRate},
      {"price_per_hour", &device.price_per_hour, Unit::kPlain, false, 0, 1e6},
      {"cores", &device.cores, Unit::kPlain, false, 0, 1e6},
  };
  for (size_t i = 0; i < kOperationNames.size(); ++i)
    fields.curves.push_back({fmt::format("efficiency.{}", kOperationNames[i]), &device.efficiency[i]});
  return fields;
}

Fields FieldsOf(Level& level) {
  Fields fields;
  fields.numbers.push_back({"size", &level.size, Unit::kPlain, true, 1, static_cast<double>(kMaxDevices)});
  AddLink(fields, level.link);
  fields.numbers.push_back(
      {"group_bytes_per_second", &level.group_bytes_per_second, Unit::kBytesPerSecond, false, 0, kMaxRate});
  return fields;
}

Fields FieldsOf(PairLink& pair) {
  Fields fields;
  AddLink(fields, pair.link);
  return fields;
}

const std::vector<std::string>& KnownPrecisions() {
  static const std::vector<std::string> kKnown = {"fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"};
  return kKnown;
}

std::string TableName(const PairLink& pair) { return fmt::format("override.{}-{}", pair.from, pair.to); }

}  // namespace penstock::cluster
