#include "session/run/calibrate.h"

#include <ATen/ATen.h>
#include <fmt/chrono.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
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

constexpr double kMaxDrift = 0.2;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Median over samples of at least `floor` seconds each.
template <typename Work>
double MedianSeconds(const Work& work, int samples = 7, double floor = 4e-3) {
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

// What a Linear does: x W^T with 4 k inputs and outputs alike, tokens growing with them.
double GemmSeconds(int64_t tokens, int64_t width, at::ScalarType type, double* flops) {
  const at::Tensor x = at::ones({tokens, width}, type), w = at::ones({width, width}, type);
  *flops = 2.0 * static_cast<double>(tokens * width * width);
  return MedianSeconds([&] { at::mm(x, w.t()); });
}

// A rate without the fixed time of a call, which prices add to it again; at least a tenth of the time is the work's.
double RateOf(double amount, double seconds, double launch) {
  return amount / std::max(seconds - launch, seconds / 10);
}

// Rates by size as a peak and shares of it; sizes ascend.
cluster::EfficiencyCurve CurveOf(const Points& rates, double* peak) {
  *peak = 0;
  for (const auto& point : rates) *peak = std::max(*peak, point.efficiency);
  Points shares;
  for (const auto& point : rates) shares.push_back({point.size, point.efficiency / *peak});
  return cluster::EfficiencyCurve(shares);
}

void MeasureGemm(cluster::Device& device) {
  Points rates;
  for (const auto& [tokens, width] : {std::pair<int64_t, int64_t>{32, 32},
                                      {64, 64},
                                      {128, 64},
                                      {256, 128},
                                      {512, 128},
                                      {512, 256},
                                      {1024, 256},
                                      {1024, 512},
                                      {1024, 1024}}) {
    double flops = 0;
    const double seconds = GemmSeconds(tokens, width, at::kFloat, &flops);
    rates.push_back({flops, RateOf(flops, seconds, device.launch_seconds)});
  }
  double peak = 0;
  device.efficiency[static_cast<size_t>(cluster::Operation::gemm)] = CurveOf(rates, &peak);
  device.flops_per_second["fp32"] = peak;
  for (const auto& [name, type] : {std::pair{"fp64", at::kDouble}, std::pair{"bf16", at::kBFloat16}}) {
    double flops = 0;
    const double seconds = GemmSeconds(512, 512, type, &flops);
    device.flops_per_second[name] = RateOf(flops, seconds, device.launch_seconds);
  }
}

void MeasureAttention(cluster::Device& device) {
  Points shares;
  for (const int64_t length : {32, 64, 128, 256, 512}) {
    const int64_t batch = 4, heads = 4, width = 64;
    const at::Tensor q = at::ones({batch, heads, length, width});
    const double seconds =
        MedianSeconds([&] { at::scaled_dot_product_attention(q, q, q, {}, 0.0, /*is_causal=*/true); });
    const double flops = 4.0 * static_cast<double>(batch * heads * length * length * width);  // uncut, as specs count
    shares.push_back({flops, std::min(1.0, RateOf(flops, seconds, device.launch_seconds) / device.flops("fp32"))});
  }
  device.efficiency[static_cast<size_t>(cluster::Operation::attention)] = cluster::EfficiencyCurve(shares);
}

void MeasureMemory(cluster::Device& device) {
  const at::Tensor few = at::ones({4});
  at::Tensor sum = at::empty({4});
  device.launch_seconds = MedianSeconds([&] { at::add_out(sum, few, few); });
  Points rates;
  for (const int64_t elements :
       {int64_t{1} << 10, int64_t{1} << 13, int64_t{1} << 16, int64_t{1} << 18, int64_t{1} << 20, int64_t{1} << 22}) {
    const at::Tensor a = at::ones({elements}), b = at::ones({elements});
    at::Tensor out = at::empty({elements});
    const auto bytes = static_cast<double>(3 * 4 * elements);
    rates.push_back({bytes, RateOf(bytes, MedianSeconds([&] { at::add_out(out, a, b); }), device.launch_seconds)});
  }
  double peak = 0;
  device.efficiency[static_cast<size_t>(cluster::Operation::memory)] = CurveOf(rates, &peak);
  device.memory_bytes_per_second = peak;
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

struct BlockTimes {
  double forward = 0, backward = 0;
};

BlockTimes MeasureBlock(const model::ModelSpec& spec, int64_t samples, int64_t length) {
  const auto layers = nn::BuildLayers(spec, 1, 2);
  std::vector<at::Tensor> parameters;
  for (const model::ParameterSpec& p : spec.parameters)
    parameters.push_back(nn::InitialParameter(p, 1, model::Precision::fp32));
  nn::MicroBatchInputs inputs;
  for (int64_t i = 0; i < samples; ++i) inputs.sample_ids.push_back(i);
  nn::LayerContext context;
  context.batch = &inputs;
  const at::Tensor input = at::linspace(-0.5, 0.5, samples * length * spec.hidden).view({samples, length, spec.hidden});
  std::vector<double> forward, backward;
  for (int pass = 0; pass < 9; ++pass) {
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
    forward.push_back(f);
    backward.push_back(SecondsSince(start));
  }
  return {Median(forward), Median(backward)};
}

// Element-wise kernels, copies and bookkeeping of a real block move more, or slower, than the sum of two vectors: by
// what factor, so that the priced blocks take as long as the measured ones.
double FitLayerTraffic(const cluster::Device& device, std::ostream& progress) {
  struct Block {
    model::ModelSpec spec;
    int64_t samples;
  };
  std::vector<Block> blocks;
  double measured = 0;
  for (const char* family : {"gpt2", "llama"}) {
    for (const auto& [hidden, samples] : {std::pair<int64_t, int64_t>{128, 4}, {256, 4}, {384, 4}}) {
      model::GptConfig config;
      config.family = family;
      config.layers = 1;
      config.hidden = hidden;
      config.heads = hidden / 64;
      config.context = 128;
      blocks.push_back({model::BuildGptSpec(config), samples});
      const BlockTimes times = MeasureBlock(blocks.back().spec, samples, 128);
      measured += times.forward + times.backward;
    }
  }
  // What all blocks cost when memory is `factor` times slower than a plain sum's.
  const auto priced = [&](double factor) {
    cluster::Device slower = device;
    slower.layer_traffic = factor;
    double seconds = 0;
    for (const Block& block : blocks) {
      const cost::LayerPrices p = cost::PriceLayer(
          block.spec.layers[1], {.device = slower, .arithmetic = {}, .samples = block.samples, .length = 128});
      seconds += p.forward.seconds + p.backward_input.seconds + p.backward_weight.seconds;
    }
    return seconds;
  };
  // It grows with the factor: halve the interval.
  double low = 0.25, high = 100;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (priced(middle) < measured ? low : high) = middle;
  }
  progress << fmt::format("blocks       {} measured; memory traffic takes {:.2f} times a plain sum's\n",
                          FormatSeconds(measured), high);
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
    MeasureMemory(device);                                // first: rates are without the time of a call
    progress << fmt::format("memory       {:.1f} GB/s, an operation takes at least {}\n",
                            device.memory_bytes_per_second / 1e9, FormatSeconds(device.launch_seconds));
    MeasureGemm(device);
    progress << fmt::format("products     {:.1f} GFLOP/s fp32 of one thread\n", device.flops("fp32") / 1e9);
    MeasureAttention(device);
    device.layer_traffic = FitLayerTraffic(device, progress);
    // The same product again: what the machine does beside shows as a difference.
    double flops = 0;
    const double seconds = GemmSeconds(1024, 512, at::kFloat, &flops);
    const double again = RateOf(flops, seconds, device.launch_seconds);
    const double before =
        device.flops("fp32") * device.efficiency[static_cast<size_t>(cluster::Operation::gemm)](flops);
    drift = std::abs(again / before - 1);
  });
  progress << fmt::format("hand-over    {} between two ranks\n", FormatSeconds(hand_over));
  const std::string environment = runtime::DescribeEnvironment(1).Fingerprint();
  device.summary = "one core, one thread per rank";
  cluster.summary = fmt::format("{} cores, measured on {}", cores, Today());
  if (drift > kMaxDrift) {
    cluster.summary += fmt::format("; not quiet: a product took {:.0f} % more or less a moment later", 100 * drift);
    progress << "warning: the machine is not quiet, a product's time changed by " << fmt::format("{:.0f}", 100 * drift)
             << " % while it was measured; calibrate again when nothing else runs\n";
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
