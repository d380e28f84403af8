// src/cluster/cluster.h
//
// What a schedule is priced on: devices, the links between them as a hierarchy, and what they cost. Read from TOML
// (cluster/read.h); every number in a file names its source, so that a report can say where a prediction comes from.
// Units are in the names; bandwidths are bytes per second and device in one direction, unless said otherwise.
// Plain data: immutable once read; read it from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::cluster {

// Share of a peak that operations reach, by their size: piecewise linear in log(size), flat outside the range (and then
// marked as extrapolated: InRange).
class EfficiencyCurve {
 public:
  struct Point {
    double size = 0;  // flops of a GEMM, bytes of a memory-bound operation or message
    double efficiency = 1;
    bool operator==(const Point&) const = default;
  };
  EfficiencyCurve() = default;                          // 1 everywhere; has no range
  explicit EfficiencyCurve(std::vector<Point> points);  // ascending sizes > 0, efficiencies in (0, 1]
  double operator()(double size) const;                 // a size of 0 or less: as the smallest point
  // Was anything of this size measured or stated? True for an empty curve.
  bool InRange(double size) const;
  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
  std::vector<double> logs_;  // of the sizes
};

// Classes of operations that reach different shares of a peak.
enum class Operation : uint8_t { gemm, attention, memory };  // memory: bound by bytes (norms, activations, optimizer)
inline constexpr int kOperationCount = 3;
inline constexpr std::array<std::string_view, kOperationCount> kOperationNames = {"gemm", "attention", "memory"};

struct Device {
  std::string name;
  std::string summary;
  std::map<std::string, double, std::less<>> flops_per_second;  // peak, by precision ("fp32", "bf16")
  double memory_bytes_per_second = 0;
  int64_t memory_bytes = 0;
  double launch_seconds = 0;  // fixed time of one operation (kernel launch)
  // What element-wise and other memory-bound work inside layers takes, as a multiple of what its bytes would at the
  // bandwidth: strided copies, instructions, small kernels of a CPU. 0: not stated, 1.
  double layer_traffic = 0;
  // By Operation, of flops (gemm, attention) or bytes (memory).
  std::array<EfficiencyCurve, kOperationCount> efficiency;
  // Beside the device, per device: host memory and disk, and the way to them (0: none stated).
  int64_t host_memory_bytes = 0;
  double host_bytes_per_second = 0;  // device to host memory
  double disk_bytes_per_second = 0;
  double price_per_hour = 0;  // of one device, in the currency of the file; 0: not stated
  std::string price_currency;
  int cores = 0;  // a CPU: cores that ranks share; 0: every rank has the device to itself

  // UserError that names the precisions there are.
  double flops(std::string_view precision) const;
};

// alpha-beta, with the share of the bandwidth that messages of a size reach.
struct Link {
  double latency_seconds = 0;
  double bytes_per_second = 0;         // of one device in one direction
  EfficiencyCurve efficiency;          // of the bandwidth, by message bytes
  double Seconds(double bytes) const;  // latency + bytes / (bandwidth * efficiency(bytes)); 0 bandwidth: infinite
};

// A level of the hierarchy: `size` groups of the level below (devices, at level 0) make one group of this level. Two
// devices talk over the lowest level whose group holds both.
struct Level {
  std::string name;  // "node", "pod", "site"
  int64_t size = 1;
  Link link;
  // What the whole group below has towards this level, in one direction (a node's network cards); 0: as much as its
  // devices together. Concurrent transfers share it.
  double group_bytes_per_second = 0;
};

// A link of one ordered pair of devices that differs from its level's.
struct PairLink {
  int64_t from = 0, to = 0;
  Link link;
};

struct Cluster {
  std::string name;
  std::string summary;
  std::string file;                            // where it was read from
  std::vector<Device> devices;                 // types
  std::vector<int32_t> device_of;              // [device index] -> type; empty: all are type 0
  std::vector<Level> levels;                   // lowest first; the product of their sizes is the number of devices
  std::vector<PairLink> overrides;             // ascending by (from, to); few
  bool calibrated = false;                     // numbers measured on the machine itself, rather than stated by a vendor
  std::map<std::string, std::string> sources;  // "device.a100.memory_bytes_per_second" -> where the number comes from

  int64_t num_devices() const;
  const Device& device(int64_t index) const;  // UserError when there is no such device
  // Lowest level whose group holds both; -1: the same device. UserError when they share none: an index is out of range.
  int LevelBetween(int64_t a, int64_t b) const;
  // The pair's override, or its level's link; a link without latency and of infinite bandwidth from a device to itself.
  const Link& LinkBetween(int64_t from, int64_t to) const;
};

}  // namespace penstock::cluster
