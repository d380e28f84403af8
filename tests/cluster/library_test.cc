// The shipped clusters, files on disk, and the machine at hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "cluster/equal.h"
#include "cluster/example.h"
#include "cluster/read.h"
#include "paths.h"

namespace penstock::cluster {
namespace {

std::string FileOf(const std::string& name) { return SourceFolder() + "/clusters/" + name + ".toml"; }

TEST(ClusterLibrary, HoldsTheFilesOfTheSources) {
  std::vector<std::string> names;
  for (const std::string& file : FileSystem::Real().List(SourceFolder() + "/clusters"))
    names.push_back(file.substr(0, file.rfind('.')));
  EXPECT_EQ(ClusterNames(), names);
  EXPECT_GE(names.size(), 8u);
  for (const std::string& name : names) {
    const Cluster shipped = ReadCluster(name);
    EXPECT_EQ(shipped.name, name);
    EXPECT_EQ(shipped.file, "clusters/" + name + ".toml");
    EXPECT_FALSE(shipped.calibrated);
    ExpectEqual(shipped, ReadCluster(FileOf(name)));
  }
}

TEST(ClusterLibrary, EveryFileReadsBackFromWhatIsPrinted) {
  for (const std::string& name : ClusterNames()) {
    SCOPED_TRACE(name);
    const Cluster cluster = ReadCluster(name);
    ExpectEqual(ParseCluster(PrintCluster(cluster), "printed"), cluster);
  }
}

TEST(PrintCluster, ReadsBackWithMixedDevicesAndOverrides) {
  Cluster cluster = ParseCluster(kExample, "c.toml");
  ExpectEqual(ParseCluster(PrintCluster(cluster), "printed"), cluster);
  for (size_t i = 0; i < 16; ++i) cluster.device_of[i] = i % 4 == 2;
  cluster.calibrated = true;
  cluster.summary = "quotes \" and \\ and \n lines, \xc3\xa9";
  cluster.levels[0].link.latency_seconds = 1.0 / 3;
  const std::string text = PrintCluster(cluster);
  EXPECT_NE(text.find("layout = [\"fast\", \"fast\", \"slow\", \"fast\"]"), std::string::npos) << text;
  ExpectEqual(ParseCluster(text, "printed"), cluster);
}

TEST(PrintCluster, KeepsAStatedZeroAndItsSource) {
  std::string text(kExample);
  text.replace(text.find("launch_seconds = 5e-6"), 21, "launch_seconds = 0");
  const Cluster cluster = ParseCluster(text, "c.toml");
  EXPECT_EQ(cluster.sources.count("device.fast.launch_seconds"), 1u);
  ExpectEqual(ParseCluster(PrintCluster(cluster), "printed"), cluster);
}

// Listed by hand, not by what the reader knows.
TEST(ClusterLibrary, EveryNumberHasASource) {
  for (const std::string& name : ClusterNames()) {
    const Cluster cluster = ReadCluster(name);
    std::vector<std::string> keys;
    const auto add = [&](bool there, const std::string& key) {
      if (there) keys.push_back(key);
    };
    for (const Device& d : cluster.devices) {
      const std::string table = "device." + d.name + ".";
      for (const auto& [precision, rate] : d.flops_per_second) add(true, table + "flops_per_second." + precision);
      add(true, table + "memory_bytes_per_second");
      add(true, table + "memory_bytes");
      add(d.launch_seconds != 0, table + "launch_seconds");
      add(d.layer_traffic != 0, table + "layer_traffic");
      add(d.host_memory_bytes != 0, table + "host_memory_bytes");
      add(d.host_bytes_per_second != 0, table + "host_bytes_per_second");
      add(d.disk_bytes_per_second != 0, table + "disk_bytes_per_second");
      add(d.price_per_hour != 0, table + "price_per_hour");
      add(d.cores != 0, table + "cores");
      for (size_t o = 0; o < kOperationCount; ++o)
        add(!d.efficiency[o].points().empty(), table + "efficiency." + std::string(kOperationNames[o]));
    }
    for (const Level& l : cluster.levels) {
      const std::string table = "level." + l.name + ".";
      add(true, table + "size");
      add(true, table + "latency_seconds");
      add(true, table + "bytes_per_second");
      add(l.group_bytes_per_second != 0, table + "group_bytes_per_second");
      add(!l.link.efficiency.points().empty(), table + "efficiency");
    }
    for (const std::string& key : keys) {
      const auto found = cluster.sources.find(key);
      ASSERT_NE(found, cluster.sources.end()) << name << ": " << key;
      EXPECT_GE(found->second.size(), 6u) << name << ": " << key << " = " << found->second;
    }
    EXPECT_EQ(cluster.sources.size(), keys.size()) << name;
  }
}

// What a unit or a direction gone wrong would break.
TEST(ClusterLibrary, NumbersArePlausible) {
  for (const std::string& name : ClusterNames()) {
    SCOPED_TRACE(name);
    const Cluster c = ReadCluster(name);
    const Device& d = c.devices[0];
    if (d.cores > 0) {  // a processor core
      EXPECT_GT(d.flops("fp32"), 5e9);
      EXPECT_LT(d.flops("fp32"), 5e11);
      EXPECT_GT(d.memory_bytes_per_second, 1e9);
      EXPECT_LT(d.memory_bytes_per_second, 1e11);
      continue;
    }
    EXPECT_GT(d.flops("fp32"), 1e13);
    EXPECT_LT(d.flops("fp16"), 1e15);
    EXPECT_GT(d.flops("fp16") / d.memory_bytes_per_second, 50);  // flops per byte
    EXPECT_LT(d.flops("fp16") / d.memory_bytes_per_second, 400);
    EXPECT_GT(d.memory_bytes, int64_t{20} << 30);
    EXPECT_LT(d.memory_bytes, int64_t{150} << 30);
    ASSERT_GE(c.levels.size(), 2u);
    int64_t below = 1;
    for (size_t i = 0; i < c.levels.size(); ++i) {
      const Level& level = c.levels[i];
      if (i > 0) {
        EXPECT_LT(level.link.bytes_per_second, c.levels[i - 1].link.bytes_per_second);
        EXPECT_GT(level.link.latency_seconds, c.levels[i - 1].link.latency_seconds);
        EXPECT_GE(level.group_bytes_per_second, level.link.bytes_per_second);
        EXPECT_LE(level.group_bytes_per_second, level.link.bytes_per_second * static_cast<double>(below));
      }
      below *= level.size;
    }
  }
}

TEST(ReadCluster, PathsAndNames) {
  EXPECT_EQ(ReadCluster(FileOf("v100")).name, "v100");
  EXPECT_THROW(ReadCluster("no/such/file"), UserError);
  EXPECT_THROW(ReadCluster("missing.toml"), UserError);
  try {
    ReadCluster("a100-08");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "there is no cluster named 'a100-08'; did you mean 'a100-80'?; a path to a file has a '/' or ends in .toml");
  }
}

TEST(ReadCluster, ThisMachineIsWhatACalibrationWrote) {
  const std::string folder = testing::TempDir() + "/penstock_cluster_test_config";
  std::filesystem::remove_all(folder);
  const char* before = std::getenv("XDG_CONFIG_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
  EXPECT_EQ(ThisMachineFile(), folder + "/penstock/this-machine.toml");
  try {
    ReadCluster("this-machine");
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("`penstock doctor --calibrate` writes it"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(ThisMachineFile()), std::string::npos);
  }
  FileSystem::Real().CreateFolders(folder + "/penstock");
  WriteFileAtomically(ThisMachineFile(), kExample);
  EXPECT_EQ(ReadCluster("this-machine").file, ThisMachineFile());
  if (before == nullptr)
    unsetenv("XDG_CONFIG_HOME");
  else
    setenv("XDG_CONFIG_HOME", kept.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST(ShippedClusters, AreListedWithTheirSizes) {
  const std::vector<ClusterEntry> entries = ShippedClusters();
  ASSERT_EQ(entries.size(), ClusterNames().size());
  for (const ClusterEntry& entry : entries) {
    EXPECT_FALSE(entry.summary.empty());
    EXPECT_EQ(entry.devices, ReadCluster(entry.name).num_devices());
  }
}

}  // namespace
}  // namespace penstock::cluster
