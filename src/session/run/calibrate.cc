#include "session/run/calibrate.h"

#include <ATen/ATen.h>
#include <fmt/chrono.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/median.h"
#include "base/units.h"
#include "cluster/read.h"
#include "comm/thread_ranks.h"
#include "cost/layer_price.h"
#include "model/gpt.h"
#include "nn/init.h"
#include "nn/layer.h"
#include "runtime/environment.h"
#include "session/plan.h"

namespace penstock::session {
namespace {

using Clock = std::chrono::steady_clock;
using Points = std::vector<cluster::EfficiencyCurve::Point>;

constexpr double kMaxDrift = 0.3;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Median over samples of at least `floor` seconds each.
template <typename Work>
double MedianSeconds(const Work& work, int samples = 3, double floor = 4e-3) {
  work();
  int64_t repeats = 1;
  for (;;) {  // how often fits the floor
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < repeats; ++i) work();
    if (SecondsSince(start) >= floor || repeats > (1 << 20)) break;
    repeats *= 2;
  }
  std::vector<double> seconds;
  for (int s = 0; s < samples; ++s) {
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < repeats; ++i) work();
    seconds.push_back(SecondsSince(start) / static_cast<double>(repeats));
  }
  return Median(std::move(seconds));
}

// One thing that is measured: seconds of `amount` flops or bytes.
struct Probe {
  double amount = 0;
  std::function<double()> measure;
  std::vector<double> seconds{};  // [round]
};

// A machine's speed moves while it is measured: every probe once a round, and the median over the rounds, so that what
// is compared (products, and blocks that are mostly products) comes from the same minutes.
constexpr int kRounds = 5;

double SecondsOf(const Probe& probe) { return Median(probe.seconds); }

// What a Linear does: x W^T.
Probe Gemm(int64_t tokens, int64_t width, at::ScalarType type) {
  return {2.0 * static_cast<double>(tokens * width * width), [=] {
            const at::Tensor x = at::ones({tokens, width}, type), w = at::ones({width, width}, type);
            return MedianSeconds([&] { at::mm(x, w.t()); });
          }};
}

Probe Attention(int64_t length) {
  const int64_t batch = 4, heads = 4, width = 64;
  // Uncut, as specs count.
  return {4.0 * static_cast<double>(batch * heads * length * length * width), [=] {
            const at::Tensor q = at::ones({batch, heads, length, width});
            return MedianSeconds([&] { at::scaled_dot_product_attention(q, q, q, {}, 0.0, /*is_causal=*/true); });
          }};
}

Probe Sum(int64_t elements) {
  return {static_cast<double>(3 * 4 * elements), [=] {
            const at::Tensor a = at::ones({elements}), b = at::ones({elements});
            at::Tensor out = at::empty({elements});
            return MedianSeconds([&] { at::add_out(out, a, b); });
          }};
}

// Without the fixed time of a call, which prices add to it again; at least a tenth of the time is the work's.
double RateOf(const Probe& probe, double launch) {
  const double seconds = SecondsOf(probe);
  return probe.amount / std::max(seconds - launch, seconds / 10);
}

// Rates by size as shares of a peak; sizes ascend. `peak` 0: becomes the highest rate.
cluster::EfficiencyCurve CurveOf(const std::vector<Probe>& probes, double launch, double* peak) {
  if (*peak == 0)
    for (const Probe& probe : probes) *peak = std::max(*peak, RateOf(probe, launch));
  Points shares;
  for (const Probe& probe : probes) shares.push_back({probe.amount, std::min(1.0, RateOf(probe, launch) / *peak)});
  return cluster::EfficiencyCurve(shares);
}

double HandOverSeconds() {
  double seconds = 0;
  comm::RunThreadRanks(2, {}, [&](comm::Communicator& comm) {
    constexpr int kRounds = 2000;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kRounds; ++i) {
      if (comm.rank() == 0) comm.Send(1, {1, 0}, {});
      comm.Recv(1 - comm.rank(), {1, 0})->Wait();
      if (comm.rank() == 1) comm.Send(0, {1, 0}, {});
    }
    if (comm.rank() == 0) seconds = SecondsSince(start) / (2 * kRounds);
  });
  return seconds;
}

// Forward and backward of a block.
double BlockSeconds(const model::ModelSpec& spec, int64_t samples, int64_t length) {
  const auto layers = nn::BuildLayers(spec, 1, 2);
  std::vector<at::Tensor> parameters;
  for (const model::ParameterSpec& p : spec.parameters)
    parameters.push_back(nn::InitialParameter(p, 1, model::Precision::fp32));
  nn::MicroBatchInputs inputs;
  for (int64_t i = 0; i < samples; ++i) inputs.sample_ids.push_back(i);
  nn::LayerContext context;
  context.batch = &inputs;
  const at::Tensor input = at::linspace(-0.5, 0.5, samples * length * spec.hidden).view({samples, length, spec.hidden});
  std::vector<double> seconds;
  for (int pass = 0; pass < 5; ++pass) {
    std::vector<at::Tensor> leaves = {input.detach().requires_grad_(true)}, aliases;
    for (const int p : spec.layers[1].parameters) aliases.push_back(parameters[p].detach().requires_grad_(true));
    leaves.insert(leaves.end(), aliases.begin(), aliases.end());
    const std::vector<at::Tensor> in = {leaves[0]};
    Clock::time_point start = Clock::now();
    const std::vector<at::Tensor> out = layers[0]->Forward(in, aliases, context);
    const double f = SecondsSince(start);
    const at::Tensor gradient = at::ones_like(out[0]);
    start = Clock::now();
    torch::autograd::grad({out[0]}, leaves, {gradient});
    if (pass < 2) continue;  // fresh memory
    seconds.push_back(f + SecondsSince(start));
  }
  return Median(seconds);
}

struct Block {
  model::ModelSpec spec;
  int64_t samples;
};
constexpr int64_t kBlockLength = 128;

std::vector<Block> Blocks() {
  std::vector<Block> blocks;
  for (const char* family : {"gpt2", "llama"})
    for (const auto& [hidden, samples] : {std::pair<int64_t, int64_t>{128, 4}, {256, 4}, {384, 4}}) {
      model::GptConfig config;
      config.family = family;
      config.layers = 1;
      config.hidden = hidden;
      config.heads = hidden / 64;
      config.context = kBlockLength;
      blocks.push_back({model::BuildGptSpec(config), samples});
    }
  return blocks;
}

// Element-wise kernels, copies and bookkeeping of a real block move more, or slower, than the sum of two vectors: by
// what factor, so that the priced blocks take as long as the measured ones.
double FitLayerTraffic(const cluster::Device& device, const std::vector<Block>& blocks, double measured) {
  const auto priced = [&](double factor) {
    cluster::Device slower = device;
    slower.layer_traffic = factor;
    double seconds = 0;
    for (const Block& block : blocks) {
      const cost::LayerPrices p = cost::PriceLayer(
          block.spec.layers[1], {.device = slower, .arithmetic = {}, .samples = block.samples, .length = kBlockLength});
      seconds += p.forward.seconds + p.backward_input.seconds + p.backward_weight.seconds;
    }
    return seconds;
  };
  // It grows with the factor: halve the interval.
  double low = 1, high = 200;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (priced(middle) < measured ? low : high) = middle;
  }
  return high;
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:%Y-%m-%d}", parts);
}

}  // namespace

cluster::Cluster Calibrate(std::ostream& progress) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  cluster::Cluster cluster;
  cluster.name = std::string(cluster::kThisMachine);
  cluster.calibrated = true;
  cluster::Device device;
  device.name = "core";
  device.cores = cores;
  device.memory_bytes = std::max<int64_t>(int64_t{1} << 30, MachineMemory());
  const double hand_over = HandOverSeconds();
  double drift = 0;
  comm::RunThreadRanks(1, {}, [&](comm::Communicator&) {  // one intra-op thread, as a rank has
    std::vector<Probe> call = {Sum(4)}, memory, gemm, attention, narrow = {Gemm(512, 512, at::kBFloat16)},
                       wide = {Gemm(512, 512, at::kDouble)}, block;
    for (const int64_t shift : {10, 13, 16, 18, 20, 22}) memory.push_back(Sum(int64_t{1} << shift));
    for (const auto& [tokens, width] : {std::pair<int64_t, int64_t>{32, 32},
                                        {64, 64},
                                        {128, 64},
                                        {256, 128},
                                        {512, 128},
                                        {512, 256},
                                        {1024, 256},
                                        {1024, 512},
                                        {1024, 1024}})
      gemm.push_back(Gemm(tokens, width, at::kFloat));
    for (const int64_t length : {32, 64, 128, 256, 512}) attention.push_back(Attention(length));
    const std::vector<Block> blocks = Blocks();
    for (const Block& b : blocks) block.push_back({0, [&b] { return BlockSeconds(b.spec, b.samples, kBlockLength); }});
    for (int round = 0; round < kRounds; ++round)
      for (auto* probes : {&call, &memory, &gemm, &attention, &narrow, &wide, &block})
        for (Probe& probe : *probes) probe.seconds.push_back(probe.measure());

    device.launch_seconds = SecondsOf(call[0]);
    const auto curve = [&](cluster::Operation operation, const std::vector<Probe>& probes, double peak) {
      device.efficiency[static_cast<size_t>(operation)] = CurveOf(probes, device.launch_seconds, &peak);
      return peak;
    };
    device.memory_bytes_per_second = curve(cluster::Operation::memory, memory, 0);
    device.flops_per_second["fp32"] = curve(cluster::Operation::gemm, gemm, 0);
    curve(cluster::Operation::attention, attention, device.flops("fp32"));
    device.flops_per_second["bf16"] = RateOf(narrow[0], device.launch_seconds);
    device.flops_per_second["fp64"] = RateOf(wide[0], device.launch_seconds);
    progress << fmt::format("memory       {:.1f} GB/s, an operation takes at least {}\n",
                            device.memory_bytes_per_second / 1e9, FormatSeconds(device.launch_seconds));
    progress << fmt::format("products     {:.1f} GFLOP/s fp32 of one thread\n", device.flops("fp32") / 1e9);
    double measured = 0;
    for (const Probe& b : block) measured += SecondsOf(b);
    device.layer_traffic = FitLayerTraffic(device, blocks, measured);
    progress << fmt::format("blocks       {} measured; memory traffic takes {:.2f} times a plain sum's\n",
                            FormatSeconds(measured), device.layer_traffic);
    // What the machine does beside shows as a difference between rounds.
    const auto [least, most] = std::minmax_element(gemm.back().seconds.begin(), gemm.back().seconds.end());
    drift = *most / *least - 1;
  });
  progress << fmt::format("hand-over    {} between two ranks\n", FormatSeconds(hand_over));
  const std::string environment = runtime::DescribeEnvironment(1).Fingerprint();
  device.summary = "one core, one thread per rank";
  cluster.summary = fmt::format("{} cores, measured on {}", cores, Today());
  if (drift > kMaxDrift) {
    cluster.summary +=
        fmt::format("; not quiet: one product took up to {:.0f} % longer than at another time", 100 * drift);
    progress << "warning: the machine is not quiet, one product took up to " << fmt::format("{:.0f}", 100 * drift)
             << " % longer than at another time; calibrate again when nothing else runs\n";
  }
  cluster.devices.push_back(device);
  cluster.levels.push_back({.name = "machine",
                            .size = 1024,
                            .link = {.latency_seconds = hand_over, .bytes_per_second = 0, .efficiency = {}},
                            .group_bytes_per_second = 0});
  const std::string measured = fmt::format("measured on {} with {}", Today(), environment);
  for (const char* key : {"memory_bytes", "memory_bytes_per_second", "launch_seconds", "layer_traffic", "cores",
                          "efficiency.gemm", "efficiency.attention", "efficiency.memory"})
    cluster.sources[fmt::format("device.core.{}", key)] = measured;
  for (const auto& [precision, rate] : device.flops_per_second)
    cluster.sources[fmt::format("device.core.flops_per_second.{}", precision)] = measured;
  for (const char* key : {"size", "latency_seconds"}) cluster.sources[fmt::format("level.machine.{}", key)] = measured;
  cluster.sources["level.machine.size"] = "thread ranks go up to 1024";
  cluster.sources["level.machine.bytes_per_second"] = "a hand-over is a pointer: nothing is moved";
  cluster.sources["device.core.cores"] = "what the system says";
  cluster.sources["device.core.memory_bytes"] = "what the system says; shared by all ranks";
  return cluster;
}

void CalibrateThisMachine(std::ostream& progress) {
  const std::string file = cluster::ThisMachineFile();  // a folder that cannot be made is found before minutes pass
  FileSystem::Real().CreateFolders(std::filesystem::path(file).parent_path().string());
  const cluster::Cluster cluster = Calibrate(progress);
  WriteFileAtomically(file, cluster::PrintCluster(cluster), /*overwrite=*/true);
  progress << "written      " << file << "\n";
}

}  // namespace penstock::session
