// src/cluster/file/fields.h
//
// The numbers of a cluster file, listed once: what is read, printed and must have a source.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cluster/cluster.h"

namespace penstock::cluster {

struct NumberField {
  enum class Unit { kPlain, kBytes, kBytesPerSecond };  // the last two may be texts: "80 GiB", "300 GB/s"
  std::string key;
  std::variant<int*, int64_t*, double*> value;
  Unit unit = Unit::kPlain;
  bool required = false;  // else 0 when it is not there; a 0 with a source was there
  double min = 0, max = 0;
};
struct CurveField {
  std::string key;
  EfficiencyCurve* curve = nullptr;
};
// The members of one table; they point into what they were made of.
struct Fields {
  std::vector<NumberField> numbers;
  std::vector<CurveField> curves;
};

Fields FieldsOf(Device& device);  // without flops_per_second, which has a key per precision
Fields FieldsOf(Level& level);
Fields FieldsOf(PairLink& pair);

inline constexpr double kMaxFlops = 1e21;
const std::vector<std::string>& KnownPrecisions();

// Prefix of the keys in Cluster::sources.
inline std::string TableName(const Device& device) { return "device." + device.name; }
inline std::string TableName(const Level& level) { return "level." + level.name; }
std::string TableName(const PairLink& pair);  // "override.3-5"

}  // namespace penstock::cluster
