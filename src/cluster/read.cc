#include "cluster/read.h"

#include <cstdlib>

#include "base/error.h"
#include "base/nearest.h"
#include "cluster/library/shipped.h"

namespace penstock::cluster {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Empty where the environment names none.
std::string SettingsFolder() {
  const std::string folder = Variable("XDG_CONFIG_HOME"), home = Variable("HOME");
  return !folder.empty() || home.empty() ? folder : home + "/.config";
}

// clusters/a100-80.toml -> a100-80
std::string_view NameOf(const ShippedFile& file) {
  const std::string_view name = file.path.substr(file.path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

}  // namespace

std::string ThisMachineFile() {
  std::string folder = SettingsFolder();
  if (folder.empty())
    throw UserError("'{}' is kept in the folder of your settings, and neither XDG_CONFIG_HOME nor HOME is set; set one",
                    kThisMachine);
  return fmt::format("{}/penstock/{}.toml", folder, kThisMachine);
}

bool ThisMachineIsMeasured(FileSystem& files) { return !SettingsFolder().empty() && files.Exists(ThisMachineFile()); }

Cluster ReadCluster(const std::string& file_or_name, FileSystem& files) {
  if (file_or_name == kThisMachine) {
    const std::string path = ThisMachineFile();
    if (!files.Exists(path))
      throw UserError("this machine has not been measured: {} is not there; `penstock doctor --calibrate` writes it",
                      path);
    return ParseCluster(ReadFile(path, files), path);
  }
  if (file_or_name.find('/') != std::string::npos || file_or_name.ends_with(".toml"))
    return ParseCluster(ReadFile(file_or_name, files), file_or_name);
  for (const ShippedFile& file : ShippedFiles())
    if (NameOf(file) == file_or_name) return ParseCluster(file.text, std::string(file.path));
  std::vector<std::string> names = ClusterNames();
  names.emplace_back(kThisMachine);
  throw UserError("there is no cluster named '{}'{}; a path to a file has a '/' or ends in .toml", file_or_name,
                  DidYouMean(file_or_name.substr(0, 64), names));
}

std::vector<ClusterEntry> ShippedClusters() {
  std::vector<ClusterEntry> out;
  for (const ShippedFile& file : ShippedFiles()) {
    const Cluster cluster = ParseCluster(file.text, std::string(file.path));
    out.push_back({std::string(NameOf(file)), cluster.summary, cluster.num_devices()});
  }
  return out;
}

std::vector<std::string> ClusterNames() {
  std::vector<std::string> names;
  for (const ShippedFile& file : ShippedFiles()) names.emplace_back(NameOf(file));
  return names;
}

}  // namespace penstock::cluster
