#include "session/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/units.h"
#include "cluster/read.h"
#include "cluster/resize.h"
#include "cost/stack.h"
#include "session/profile_file.h"
#include "simulate/cluster_resources.h"

namespace penstock::session {
namespace {

cost::MeshOrder OrderOf(const Settings& s) {
  return s.cluster.order == "tensor_data_pipeline" ? cost::MeshOrder::tensor_data_pipeline
                                                   : cost::MeshOrder::tensor_pipeline_data;
}

schedule::Transport TransportOf(const Settings& s) {
  const auto it = std::find(schedule::kTransportNames.begin(), schedule::kTransportNames.end(), s.cluster.transport);
  PENSTOCK_CHECK(it != schedule::kTransportNames.end());
  return static_cast<schedule::Transport>(it - schedule::kTransportNames.begin());
}

std::shared_ptr<const cost::Placement> PlacementOf(const LoadedSettings& loaded,
                                                   std::shared_ptr<const cluster::Cluster> cluster) {
  const Settings& s = loaded.values;
  return std::make_shared<const cost::Placement>(std::move(cluster), s.parallel.tensor, s.parallel.data,
                                                 s.parallel.pipeline, OrderOf(s));
}

// Forward and backward of everything that has flops, as papers count: twice the forward for the backward.
double ModelFlops(const LoadedSettings& loaded, const Plan& plan) {
  return 3.0 * static_cast<double>(plan.spec.forward_flops(1, plan.length)) *
         static_cast<double>(loaded.values.train.batch);
}

// Factor either way: of data sheets what single published runs were off (docs/exam.md), of an assumed CPU what lies
// between slow and fast ones.
double Uncertainty(const cluster::Cluster& cluster) { return cluster.devices[0].cores > 0 ? 3 : 1.3; }

// "0: embed, blocks.0 to blocks.2; 1: blocks.3 to head"; many stages by their number.
std::string StagesInWords(const Plan& plan) {
  constexpr int kMaxStages = 16;
  const int stages = plan.partition.stages();
  if (stages > kMaxStages) return fmt::format("{}", stages);
  std::string text;
  for (int stage = 0; stage < stages; ++stage) {
    const int first = plan.partition.first[stage], last = plan.partition.first[stage + 1] - 1;
    text += fmt::format("{}{}: ", stage == 0 ? "" : "; ", stage);
    if (last < first)
      text += "nothing";
    else if (last == first)
      text += plan.spec.layers[first].path;
    else
      text += fmt::format("{} to {}", plan.spec.layers[first].path, plan.spec.layers[last].path);
  }
  return text;
}

// Where nobody gave a peak for fp16, that of bf16: the products are as wide.
std::shared_ptr<const cluster::Cluster> WithFp16(const cluster::Cluster& given) {
  auto cluster = std::make_shared<cluster::Cluster>(given);
  for (cluster::Device& device : cluster->devices)
    if (const auto bf16 = device.flops_per_second.find("bf16"); bf16 != device.flops_per_second.end())
      device.flops_per_second.try_emplace("fp16", bf16->second);
  return cluster;
}

}  // namespace

bool Prediction::fits() const {
  for (const int64_t bytes : machine_bytes)
    if (memory_limits[0] > 0 && bytes > memory_limits[0]) return false;
  for (size_t r = 0; r < memory_bytes.size(); ++r)
    if (memory_limits[r] > 0 && memory_bytes[r] > memory_limits[r]) return false;
  return true;
}

std::shared_ptr<const cluster::Cluster> ThisMachine() {
  if (cluster::ThisMachineIsMeasured())
    return std::make_shared<const cluster::Cluster>(cluster::ReadCluster(std::string(cluster::kThisMachine)));
  cluster::Cluster generic = cluster::ReadCluster("generic-cpu");
  if (const unsigned cores = std::thread::hardware_concurrency(); cores > 0)
    generic.devices[0].cores = static_cast<int>(cores);
  if (const int64_t bytes = MachineMemory(); bytes > 0) generic.devices[0].memory_bytes = bytes;
  return std::make_shared<const cluster::Cluster>(std::move(generic));
}

std::shared_ptr<const cluster::Cluster> ClusterOf(const LoadedSettings& loaded) {
  const Settings& s = loaded.values;
  if (!loaded.config.IsSet("cluster.name")) return ThisMachine();
  cluster::Cluster cluster = cluster::ReadCluster(s.cluster.name);
  const int64_t wanted = s.parallel.tensor * s.parallel.data * s.parallel.pipeline;
  // Thread ranks of one machine do not become more by wishing.
  if (wanted > cluster.num_devices() && cluster.device_of.empty() && cluster.devices.size() == 1 &&
      cluster.devices[0].cores == 0) {
    const int64_t in_file = cluster.num_devices();
    cluster = cluster::Resized(cluster, wanted);
    cluster.summary += fmt::format("; enlarged from {} to {} devices", in_file, cluster.num_devices());
  }
  return std::make_shared<const cluster::Cluster>(std::move(cluster));
}

std::optional<cost::Arithmetic> ArithmeticOf(const LoadedSettings& loaded, const cluster::Cluster& cluster) {
  const Settings& s = loaded.values;
  const bool narrow = s.numerics.precision == "bf16" || s.numerics.precision == "fp16";
  const bool own =
      s.cluster.arithmetic == "own" || (s.cluster.arithmetic == "auto" && (!narrow || cluster.devices[0].cores > 0));
  if (!own) {
    // Devices from before bf16 compute in fp16 at the same widths.
    const auto& peaks = cluster.devices[0].flops_per_second;
    const bool fp16 = peaks.count("fp16") > 0 && (s.numerics.precision == "fp16" || peaks.count("bf16") == 0);
    cost::Arithmetic arithmetic = cost::MixedArithmetic(fp16 ? "fp16" : "bf16");
    const int gradient = Registry<cost::Stack>::Find(s.cluster.stack).gradient_bytes;
    if (gradient > 0) arithmetic.gradient_bytes = gradient;
    return arithmetic;
  }
  // On other devices than CPUs every rank has its own memory, and nothing is known of workspaces.
  if (s.parallel.tensor > 1 || !s.model.reference.empty() || s.parallel.recompute == "selective") {
    cost::Arithmetic arithmetic = cost::OwnArithmetic(model::ParsePrecision(s.numerics.precision));
    arithmetic.own = false;
    return arithmetic;
  }
  return std::nullopt;
}

Prediction Predict(const LoadedSettings& loaded, const Plan& plan, std::shared_ptr<const cluster::Cluster> cluster) {
  const Settings& s = loaded.values;
  if (s.numerics.precision == "fp16") cluster = WithFp16(*cluster);
  Prediction p;
  p.cluster = cluster;
  p.placement = PlacementOf(loaded, cluster);
  p.profile = std::make_shared<const schedule::Profile>(s.cluster.profile.empty() ? schedule::Profile{}
                                                                                  : LoadProfiles(s.cluster.profile));
  const auto stack = ArithmeticOf(loaded, *cluster);
  const cost::Arithmetic arithmetic = stack ? *stack : cost::OwnArithmetic(model::ParsePrecision(s.numerics.precision));
  p.costs = std::make_shared<const cost::PlanCosts>(
      cost::CostRequest{.spec = plan.spec,
                        .partition = plan.partition,
                        .units = plan.units,
                        .schedule = plan.schedule,
                        .placement = *p.placement,
                        .arithmetic = arithmetic,
                        .samples = plan.samples,
                        .length = plan.length,
                        .sequence_parallel = s.parallel.sequence_parallel,
                        .selective = s.parallel.recompute == "selective",
                        .optimizer_states = optim::StatesPerParameter(s.optimizer),
                        .optimizer = s.optimizer.name,
                        .threads = static_cast<int>(s.runtime.intra_op_threads),
                        .profile = p.profile.get(),
                        .stack = Registry<cost::Stack>::Find(s.cluster.stack)});
  const cost::PlanCosts& costs = *p.costs;
  const simulate::ClusterResources resources(plan.schedule, *p.placement, static_cast<int>(s.runtime.intra_op_threads));
  p.simulation = simulate::Simulate(
      {.schedule = plan.schedule,
       .costs = costs,
       .transport = TransportOf(s),
       .resources = s.cluster.contention ? &resources : nullptr,
       .memory = plan.memory.ranks.empty() || plan.memory.ranks[0].trace.empty() ? nullptr : &plan.memory,
       .title = "predicted"});
  p.step_seconds = p.simulation.makespan + costs.step_overhead();
  p.copies = plan.schedule.copies;
  p.devices = p.placement->num_devices();
  p.tokens_per_second = static_cast<double>(s.train.batch * plan.length) / p.step_seconds;
  p.model_flops = ModelFlops(loaded, plan);
  for (int64_t rank = 0; rank < plan.schedule.num_ranks(); ++rank) {
    const cluster::Device& device = p.placement->DeviceTypeOf(rank);
    p.memory_bytes.push_back(plan.memory.ranks[rank].peak());
    p.memory_limits.push_back(device.memory_bytes);  // of a CPU: the machine's, shared by its ranks
    const auto cells = static_cast<double>(p.copies * p.placement->tensor());
    p.peak_flops += device.flops(arithmetic.precision) * cells;
    p.price_per_step += device.price_per_hour / 3600 * p.step_seconds * cells;
  }
  const bool cpus = cluster->devices[0].cores > 0;
  if (cpus) {
    const int64_t machine = p.placement->devices_per_machine();
    std::map<int64_t, int64_t> bytes_of;
    for (int64_t rank = 0; rank < plan.schedule.num_ranks(); ++rank)
      bytes_of[p.placement->DeviceOf(rank) / machine] += plan.memory.ranks[rank].total() * s.parallel.tensor;
    for (const auto& [index, bytes] : bytes_of) p.machine_bytes.push_back(bytes + plan.memory.process);
  }
  p.calibrated = cluster->calibrated || (cpus && costs.measured_prices() > 0 && costs.computed_prices() == 0);

  p.facts = {
      {"model", fmt::format("{}{}: {} layers, hidden {}, {} parameters, {}", plan.spec.family,
                            s.model.reference.empty() ? "" : " (" + s.model.reference + ")", plan.spec.layers.size(),
                            plan.spec.hidden, FormatCount(static_cast<double>(plan.spec.parameter_count())),
                            s.numerics.precision)},
      {"stages", StagesInWords(plan)},
      {"batch", fmt::format("{} samples of {} tokens, micro-batches of {}", s.train.batch, plan.length, plan.samples)},
      {"training", fmt::format("{}, recomputation {}", s.optimizer.name, s.parallel.recompute)},
      {"schedule", fmt::format("{}, {} stages, {} micro-batches", plan.schedule.name, plan.schedule.num_stages(),
                               plan.schedule.num_micro_batches() * p.copies)},
      {"ranks",
       fmt::format("{} tensor x {} data x {} pipeline = {} devices{}", s.parallel.tensor, s.parallel.data,
                   s.parallel.pipeline, p.devices,
                   p.copies > 1 ? fmt::format("; {} replicas are alike and simulated once", p.copies) : std::string())},
      {"simulated", fmt::format("{} actions, {} messages, {}", p.simulation.actions, p.simulation.messages,
                                FormatBytes(p.simulation.message_bytes))},
      {"cluster", fmt::format("{} ({})", cluster->name, cluster->summary)},
      {"arithmetic", stack ? fmt::format("{}: {}-byte weights and activations, {}-byte gradients", arithmetic.precision,
                                         arithmetic.weight_bytes, arithmetic.gradient_bytes)
                           : fmt::format("{}, as the runtime of this project", arithmetic.precision)},
      {"prices",
       fmt::format("of {} kinds of layer and direction {} measured{}, {} computed from the device",
                   costs.measured_prices() + costs.computed_prices(), costs.measured_prices(),
                   p.profile->machine.empty() ? "" : " (on " + p.profile->machine + ")", costs.computed_prices())}};
  if (cpus)
    p.facts.emplace_back(
        "memory",
        fmt::format("predicted: {} for all ranks, what the allocator keeps and the process, of the machine's {}",
                    FormatBytes(plan.memory.machine()), FormatBytes(cluster->devices[0].memory_bytes)));
  const cluster::Device& device = cluster->devices[0];
  p.ranks_take_turns =
      cpus && p.machine_bytes.size() == 1 && plan.schedule.num_ranks() * s.runtime.intra_op_threads > device.cores;
  if (p.ranks_take_turns)
    p.warnings.push_back(
        fmt::format("{} ranks with {} thread{} each take turns on {} cores: what counts as busy includes waiting for a "
                    "core, and a rank that waits leaves its core to the others",
                    plan.schedule.num_ranks(), s.runtime.intra_op_threads, s.runtime.intra_op_threads == 1 ? "" : "s",
                    device.cores));
  if (!cpus && costs.measured_prices() > 0)
    p.warnings.push_back(fmt::format(
        "foreign prices: the times of cluster.profile were measured on {}, and '{}' has other devices",
        p.profile->machine.empty() ? "another machine" : "a machine of " + p.profile->machine, cluster->name));
  if (!p.calibrated)
    p.warnings.push_back(fmt::format(
        "uncalibrated: times come from {} of '{}', not from measurements; take the step for {} to {}",
        cpus ? "assumptions" : "data sheets and published efficiencies", cluster->name,
        FormatSeconds(p.step_seconds / Uncertainty(*cluster)), FormatSeconds(p.step_seconds * Uncertainty(*cluster))));
  if (p.simulation.extrapolated > 0)
    p.warnings.push_back(
        fmt::format("extrapolated: the prices of {} of {} actions rest on sizes outside the range that was measured or "
                    "stated",
                    p.simulation.extrapolated, p.simulation.actions));
  for (const int64_t bytes : p.machine_bytes)
    if (p.memory_limits[0] > 0 && bytes > p.memory_limits[0])
      p.warnings.push_back(fmt::format("does not fit: the ranks of a machine need {} together and it has {}",
                                       FormatBytes(bytes), FormatBytes(p.memory_limits[0])));
  if (!p.fits() && p.machine_bytes.empty()) {
    for (size_t r = 0; r < p.memory_bytes.size(); ++r)
      if (p.memory_limits[r] > 0 && p.memory_bytes[r] > p.memory_limits[r]) {
        p.warnings.push_back(fmt::format("does not fit: rank {} needs {} and its {} has {}", r,
                                         FormatBytes(p.memory_bytes[r]), p.placement->DeviceTypeOf(r).name,
                                         FormatBytes(p.memory_limits[r])));
        break;
      }
  }
  return p;
}

Simulated SimulatePlan(const LoadedSettings& loaded) {
  const Settings& s = loaded.values;
  const auto cluster = ClusterOf(loaded);
  PlanTarget target{.runs = false, .fold = false, .arithmetic = ArithmeticOf(loaded, *cluster), .trace_memory = true};
  const bool even = s.parallel.data > 1 && MicroBatchesOf(s) % s.parallel.data == 0 &&
                    s.parallel.schedule.find_first_of("/.") == std::string::npos;
  std::string why_not;
  if (s.cluster.fold && even) {
    const auto placement = PlacementOf(loaded, cluster);
    // One of several ranks on a machine alone does not see what they need together.
    why_not = cluster->devices[0].cores > 0 ? "replicas share cores and memory" : placement->WhyNotAlike();
    target.fold = why_not.empty();
  }
  const auto make = [&] { return std::make_unique<const Plan>(MakePlan(loaded, /*own_dataset=*/false, target)); };
  Simulated result{.plan = make(), .prediction = {}};
  if (target.fold && s.cluster.contention) {
    // What replicas share, one of them alone does not see.
    const simulate::ClusterResources resources(result.plan->schedule, *PlacementOf(loaded, cluster),
                                               static_cast<int>(s.runtime.intra_op_threads));
    if (!resources.resources().empty()) {
      target.fold = false;
      why_not = "replicas share network cards";
      result.plan = make();
    }
  }
  const Plan& plan = *result.plan;
  if (!plan.verdict.ok())
    throw UnsoundSchedule("the schedule '{}' is not sound, so its times mean nothing:\n{}", plan.schedule.name,
                          plan.verdict.ToString());
  result.prediction = Predict(loaded, plan, cluster);
  if (!why_not.empty() && s.parallel.data > 8) result.prediction.facts.emplace_back("not folded", why_not);
  return result;
}

}  // namespace penstock::session
