// docs/clusters.md: the table is that of the library, and the example reads.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.h"
#include "cluster/read.h"
#include "paths.h"

namespace penstock::cluster {
namespace {

std::string Rate(double bytes_per_second) { return fmt::format("{} GB/s", bytes_per_second / 1e9); }

std::string Row(const std::string& name) {
  const Cluster c = ReadCluster(name);
  const Device& d = c.devices[0];
  const std::string precision = d.flops_per_second.count("bf16") ? "bf16" : "fp16";
  std::vector<std::string> levels, links;
  for (const Level& level : c.levels) {
    levels.push_back(fmt::format("{} {}", level.name, level.size));
    links.push_back(Rate(level.link.bytes_per_second));
  }
  return fmt::format("| `{}` | {} | {}, {} | {:g} TFLOP/s {} | {} | {} | {} |\n", name, c.num_devices(),
                     FormatBytes(d.memory_bytes), Rate(d.memory_bytes_per_second), d.flops(precision) / 1e12, precision,
                     fmt::join(levels, ", "), fmt::join(links, ", "), c.summary);
}

TEST(ClusterDocs, TableIsTheLibrary) {
  const std::string page = ReadFile(SourceFolder() + "/docs/clusters.md");
  std::string table;
  for (const std::string& name : ClusterNames()) table += Row(name);
  EXPECT_NE(page.find("|---|---|---|---|---|---|---|\n" + table + "\n"), std::string::npos) << "it should be\n"
                                                                                            << table;
}

TEST(ClusterDocs, ExampleReads) {
  const std::string page = ReadFile(SourceFolder() + "/docs/clusters.md");
  const size_t begin = page.find("```toml\n") + 8;
  const Cluster cluster = ParseCluster(page.substr(begin, page.find("```", begin) - begin), "docs/clusters.md");
  EXPECT_EQ(cluster.num_devices(), 8);
  EXPECT_EQ(cluster.device(4).name, "small");
  EXPECT_EQ(cluster.LinkBetween(0, 5).bytes_per_second, 16e9);
}

}  // namespace
}  // namespace penstock::cluster
