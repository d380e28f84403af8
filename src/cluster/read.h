// src/cluster/read.h
//
// Clusters as TOML files (docs/clusters.md) and the library of machines that comes with Penstock (clusters/*.toml in
// the sources, compiled in).
//
// Errors: UserError for what is wrong in a file, all faults in one message, a line each: file, line, key, what would
//         work. A number without a source is a fault. WorldError for a file that is there and cannot be read.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "cluster/cluster.h"

namespace penstock::cluster {

inline constexpr int64_t kMaxDevices = int64_t{1} << 24;

// A path (it contains '/' or ends in ".toml"), the name of a cluster of the library, or "this-machine": what a
// calibration wrote to ThisMachineFile().
Cluster ReadCluster(const std::string& file_or_name, FileSystem& files = FileSystem::Real());

// `source_name` is the file in messages, and in Cluster::file.
Cluster ParseCluster(std::string_view toml_text, const std::string& source_name);

// TOML that reads back to the same cluster (but for Cluster::file). InternalError for a number without a source: it
// would not read back.
std::string PrintCluster(const Cluster& cluster);

struct ClusterEntry {
  std::string name;
  std::string summary;
  int64_t devices = 0;
};
// The library, by name; without "this-machine".
std::vector<ClusterEntry> ShippedClusters();
std::vector<std::string> ClusterNames();

inline constexpr std::string_view kThisMachine = "this-machine";
// ${XDG_CONFIG_HOME:-$HOME/.config}/penstock/this-machine.toml. UserError when neither variable is set.
std::string ThisMachineFile();
// Is there such a file? False where neither variable is set.
bool ThisMachineIsMeasured(FileSystem& files = FileSystem::Real());

}  // namespace penstock::cluster
