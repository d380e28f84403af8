// The file format: what is read, and what is said about what is wrong.
#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/example.h"
#include "cluster/read.h"

namespace penstock::cluster {
namespace {

std::string With(std::string_view from, std::string_view to) {
  std::string text(kExample);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Complaint(const std::string& text) {
  try {
    ParseCluster(text, "c.toml");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(ParseCluster, ReadsEverything) {
  const Cluster c = ParseCluster(kExample, "c.toml");
  EXPECT_EQ(c.name, "example");
  EXPECT_EQ(c.file, "c.toml");
  EXPECT_FALSE(c.calibrated);
  EXPECT_EQ(c.num_devices(), 16);
  ASSERT_EQ(c.devices.size(), 2u);
  const Device& fast = c.device(7);
  EXPECT_EQ(fast.name, "fast");
  EXPECT_EQ(c.device(8).name, "slow");
  EXPECT_EQ(fast.memory_bytes, int64_t{80} << 30);
  EXPECT_EQ(fast.memory_bytes_per_second, 2e12);
  EXPECT_EQ(fast.flops("bf16"), 312e12);
  EXPECT_EQ(fast.efficiency[static_cast<size_t>(Operation::gemm)](1e10), 0.7);
  EXPECT_EQ(fast.price_currency, "EUR");
  EXPECT_EQ(c.devices[1].cores, 4);
  EXPECT_EQ(c.levels[0].link.bytes_per_second, 100e9);
  EXPECT_EQ(c.levels[1].group_bytes_per_second, 3e9);
  EXPECT_EQ(c.LinkBetween(0, 1).bytes_per_second, 6);
  EXPECT_EQ(c.LinkBetween(9, 2).bytes_per_second, 5);
  EXPECT_EQ(c.sources.at("device.fast.memory_bytes"), "data sheet");
  EXPECT_EQ(c.sources.at("device.fast.flops_per_second.bf16"), "measured");
  EXPECT_EQ(c.sources.at("device.fast.flops_per_second.fp32"), "white paper");
  EXPECT_EQ(c.sources.at("device.fast.efficiency.gemm"), "a paper");
  EXPECT_EQ(c.sources.at("level.rack.group_bytes_per_second"), "stated");
  EXPECT_EQ(c.sources.at("override.9-2.latency_seconds"), "measured");
}

TEST(ParseCluster, LayoutRepeats) {
  std::string text =
      With("currency = \"EUR\"", "currency = \"EUR\"\nlayout = [\"slow\", \"fast\", \"fast\", \"fast\"]");
  for (int i = 0; i < 2; ++i) text.replace(text.find("count = 8\n"), 10, "");
  const Cluster c = ParseCluster(text, "c.toml");
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(c.device(i).name, i % 4 == 0 ? "slow" : "fast") << i;
}

TEST(ParseCluster, OneTypeNeedsNoCount) {
  std::string text(kExample);
  text.erase(text.find("[[device]]\nname = \"slow\""),
             text.find("[[level]]") - text.find("[[device]]\nname = \"slow\""));
  EXPECT_EQ(Complaint(text),
            "c.toml:5: 8 devices declared but levels make 16 (node 4 x rack 4); change a count or a size");
  text.replace(text.find("count = 8\n"), 10, "");
  EXPECT_TRUE(ParseCluster(text, "c.toml").device_of.empty());
}

struct Case {
  std::string_view from, to, complaint;
};

TEST(ParseCluster, SaysWhatIsWrongAndWhatWouldWork) {
  const Case cases[] = {
      {"count = 8", "count = 10", "c.toml:5: 18 devices declared but levels make 16 (node 4 x rack 4); change a count"},
      {"launch_seconds", "lunch_seconds",
       "c.toml:12: unknown key 'device.fast.lunch_seconds'; did you mean 'launch_seconds'?"},
      {"[[level]]\nname = \"rack\"", "[[lever]]\nname = \"rack\"",
       "c.toml:35: unknown key 'lever'; did you mean 'level'?"},
      {"currency", "currancy", "c.toml:4: unknown key 'cluster.currancy'; did you mean 'currency'?"},
      {"bf16 = 312e12", "bf61 = 312e12",
       "c.toml:11: unknown key 'device.fast.flops_per_second.bf61'; did you mean 'bf16'?"},
      {"efficiency.gemm =", "efficiency.gem =", "unknown key 'device.fast.efficiency.gem'; did you mean 'gemm'?"},
      {"launch_seconds = 5e-6", "launch_seconds = \"5 us\"",
       "c.toml:12: device.fast.launch_seconds: must be a number, not a text ('5 us')"},
      {"launch_seconds = 5e-6", "launch_seconds = -1",
       "c.toml:12: device.fast.launch_seconds: -1 is out of bounds: at least 0, at most 3600"},
      {"launch_seconds = 5e-6", "launch_seconds = nan", "nan is out of bounds"},
      {"memory_bytes = \"80 GiB\"", "memory_bytes = \"80 gigs\"",
       "c.toml:9: device.fast.memory_bytes: '80 gigs' is not a number of bytes"},
      {"memory_bytes = \"80 GiB\"", "memory_bytes = 1.5", "device.fast.memory_bytes: must be an integer, not a real"},
      {"memory_bytes = \"80 GiB\"\n", "", "c.toml:5: device.fast: 'memory_bytes' is missing"},
      {"\"2 TB/s\"", "\"2 TB\"", "'2 TB' is no rate; write 300e9 or \"300 GB/s\""},
      {"size = 4", "size = 0", "level.node.size: 0 is out of bounds"},
      {"size = 4", "size = 16777216", "the levels make more than 16777216 devices"},
      {"[1e11, 0.9]", "[1e9, 0.9]", "device.fast.efficiency.gemm: sizes must ascend: 1000000000 after 1000000000"},
      {"[1e11, 0.9]", "[1e11, 1.1]", "1.1 is out of bounds"},
      {"[1e11, 0.9]", "[1e11]", "must be a list of pairs [size, share]; [100000000000] is none"},
      {"[[1, 0.7]]", "[]", "c.toml:33: level.node.efficiency: has no points"},
      {"from = 9", "from = 16", "override.16-2: there is no device 16; there are 16, numbered from 0"},
      {"from = 9\nto = 2", "from = 0\nto = 1", "override.0-1 is given twice"},
      {"to = 2", "to = 9", "override.9-9: 'from' and 'to' must be two devices"},
      {"currency = \"EUR\"\n", "", "device.fast: price_per_hour needs a currency"},
      {"name = \"slow\"", "name = \"fast\"", "c.toml:20: there are two devices named 'fast'"},
      {"name = \"rack\"", "name = \"a rack\"", "level.name: 'a rack' is no name"},
      {"name = \"rack\"", "name = \"node\"", "there are two levels named 'node'"},
      {"currency = \"EUR\"", "currency = \"EUR\"\nlayout = [\"fast\", \"slaw\"]", "are; remove one"},
      {"[cluster]\nname", "[cluster]\nlabel", "c.toml:1: cluster: 'name' is missing"},
      {"sources.efficiency.gemm", "sources.efficiency.memory",
       "sources.efficiency.memory: there is no such number in this section; did you mean"},
      {"sources.flops_per_second = \"measured\"", "sources.flops_per_second = \"\"", "must be a text that says where"},
  };
  for (const Case& c : cases) {
    const std::string complaint = Complaint(With(c.from, c.to));
    EXPECT_NE(complaint.find(c.complaint), std::string::npos) << c.from << " -> " << c.to << "\n" << complaint;
  }
}

TEST(ParseCluster, SectionsWhoseBracketsAreMissing) {
  EXPECT_EQ(Complaint("[cluster]\nname = \"x\"\nsummary = \"\"\n[device]\nname = \"x\"\n"),
            "c.toml:4: 'device' must be sections [[device]], in double brackets");
  EXPECT_EQ(Complaint(""), "c.toml:1: 'cluster' is missing\nc.toml:1: 'device' is missing");
  EXPECT_EQ(Complaint("cluster = 1\ndevice = [1]"),
            "c.toml:1: cluster: must be a section, not an integer (1)\n"
            "c.toml:2: device: must be a section, not an integer (1)");
}

TEST(ParseCluster, LayoutThatNamesAMissingDevice) {
  std::string text = With("currency = \"EUR\"", "currency = \"EUR\"\nlayout = [\"fast\", \"slaw\"]");
  for (int i = 0; i < 2; ++i) text.replace(text.find("count = 8\n"), 10, "");
  EXPECT_EQ(Complaint(text), "c.toml:5: cluster.layout: unknown device type 'slaw'; did you mean 'slow'?");
  text.replace(text.find(", \"slaw\""), 8, "");
  EXPECT_EQ(Complaint(text), "c.toml:20: device.slow is not in cluster.layout; remove it or add it");
  text.replace(text.find("[\"fast\"]"), 8, "[\"fast\", \"slow\", \"slow\"]");
  EXPECT_EQ(Complaint(text),
            "c.toml:5: cluster.layout: 3 names do not repeat to the 16 devices that levels make; give a divisor");
}

TEST(ParseCluster, EveryNumberNeedsASource) {
  EXPECT_EQ(Complaint(With("efficiency = [[1, 0.7]]\nsource = \"stated\"\n", "efficiency = [[1, 0.7]]\n")),
            "c.toml:30: no source for level.node.size, level.node.latency_seconds, level.node.bytes_per_second, "
            "level.node.efficiency; write source = \"...\" in the section, or sources.size = \"...\"");
  // A single one is enough for a single number.
  EXPECT_EQ(Complaint(With("source = \"data sheet\"\nsources.flops",
                           "sources.memory_bytes = \"x\"\nsources.memory_bytes_per_second = \"x\"\n"
                           "sources.launch_seconds = \"x\"\nsources.price_per_hour = \"x\"\nsources.flops")),
            "c.toml:14: no source for device.fast.host_memory_bytes; write source = \"...\" in the section, or "
            "sources.host_memory_bytes = \"...\"");
}

TEST(ParseCluster, AllFaultsInOneMessageByLine) {
  std::string text = With("launch_seconds", "lunch_seconds");
  text.replace(text.find("cores = 4"), 9, "cores = true");
  text.replace(text.find("[cluster]\nname = \"example\""), 26, "[cluster]\nname = 5");
  EXPECT_EQ(Complaint(text),
            "c.toml:2: cluster.name: must be a text, not an integer (5)\n"
            "c.toml:12: unknown key 'device.fast.lunch_seconds'; did you mean 'launch_seconds'?\n"
            "c.toml:26: device.slow.cores: must be an integer, not true or false (true)");
}

TEST(PrintCluster, NeedsSources) {
  Cluster c = ParseCluster(kExample, "c.toml");
  c.sources.erase("level.node.latency_seconds");
  EXPECT_THROW(PrintCluster(c), InternalError);
}

}  // namespace
}  // namespace penstock::cluster
