// How fast and how large is a simulation? docs/simulator.md has the figures.
//   build-plan/simulate_bench [REPLICAS]
// (a) one step of a GPT of 10^12 parameters, interleaved 1F1B, on 100,352 A100: from the configuration to the timeline
//     with memory. Exit status 1 above 10 s or 4 GB.
// (b) its replicas as ranks of their own (8, or REPLICAS), in fixed order and without contention: actions per second of
//     the whole (dependencies, prices, times) and of the general way over the graph. Exit status 1 below 5 million.
// (c) the same schedule in time order, with the network cards of the nodes shared.
// One thread. The best of three, so that neighbours on the machine count less.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "cost/plan_costs.h"
#include "report/breakdown.h"
#include "schedule/lower.h"
#include "session/prediction.h"
#include "simulate/action_graph.h"
#include "simulate/cluster_resources.h"
#include "simulate/contended_engine.h"
#include "simulate/list_engine.h"

namespace penstock {
namespace {

constexpr const char* kConfig = R"(
  [model]
  reference = "gpt-1t"
  [train]
  batch = 100352
  micro_batch = 1
  [parallel]
  tensor = 8
  data = 196
  pipeline = 64
  chunks = 2
  schedule = "interleaved-1f1b"
  sequence_parallel = true
  recompute = "selective"
  [numerics]
  precision = "bf16"
  [cluster]
  name = "a100-80"
)";
constexpr int kMicroBatches = 512;  // of a replica

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double Seconds(const std::function<void()>& work) {
  const double start = Now();
  work();
  return Now() - start;
}
double Best(int tries, const std::function<void()>& work) {
  double best = Seconds(work);
  for (int i = 1; i < tries; ++i) best = std::min(best, Seconds(work));
  return best;
}

double PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

bool Folded(session::Simulated& result) {
  session::LoadedSettings settings;
  settings.config.LoadText(kConfig, "simulate_bench");
  settings.config.Finish();
  double analysed = 0;
  const double seconds = Seconds([&] {
    result = session::SimulatePlan(settings);
    analysed = Seconds([&] { report::Analyse(result.prediction.simulation.timeline); });
  });
  const auto& p = result.prediction;
  const double bytes = PeakBytes();
  fmt::print("(a) {} devices, {} ranks simulated for {} replicas, {} actions, {} memory events\n", p.devices,
             result.plan->schedule.num_ranks(), p.copies, p.simulation.actions, p.simulation.timeline.memory.size());
  fmt::print(
      "    step {:.3f} s, bubble {:.2f} %; configuration to timeline {:.2f} s (of that breakdown {:.2f} s), "
      "peak {:.2f} GB\n",
      p.step_seconds, 100 * p.simulation.bubble_fraction, seconds, analysed, bytes / 1e9);
  return seconds < 10 && bytes < 4e9;
}

schedule::Schedule Unfolded(const session::Plan& plan, int replicas) {
  schedule::LowerSpec spec;
  spec.data = replicas;
  spec.pipeline = plan.schedule.route.pipeline_size;
  spec.chunks = plan.schedule.num_stages() / spec.pipeline;
  spec.micro_batches = replicas * kMicroBatches;
  for (size_t u = plan.schedule.num_stages(); u < plan.units.size(); ++u) {
    std::vector<uint16_t> uses;
    for (const model::UnitUse& use : plan.units[u].uses) uses.push_back(static_cast<uint16_t>(use.stage));
    spec.shared_parameters.push_back(std::move(uses));
  }
  return schedule::Lower(Registry<schedule::Builder>::Find("interleaved-1f1b"), spec);
}

bool Rates(const session::Plan& plan, const session::Prediction& prediction, int replicas) {
  const schedule::Schedule schedule = Unfolded(plan, replicas);
  auto cluster = *prediction.cluster;
  const cost::Placement placement(std::make_shared<const cluster::Cluster>(cluster), 8, replicas,
                                  schedule.route.pipeline_size, cost::MeshOrder::tensor_data_pipeline);
  const cost::PlanCosts costs({.spec = plan.spec,
                               .partition = plan.partition,
                               .units = plan.units,
                               .schedule = schedule,
                               .placement = placement,
                               .arithmetic = cost::MixedArithmetic("bf16"),
                               .samples = plan.samples,
                               .length = plan.length,
                               .sequence_parallel = true,
                               .selective = true,
                               .optimizer_states = 2,
                               .optimizer = "adamw"});
  const auto actions = static_cast<double>(schedule.num_actions());
  const auto rate = [&](double seconds) { return actions / seconds / 1e6; };
  double makespan = 0;
  const double whole = Best(3, [&] {
    const auto times = simulate::TimesInOrder<double>(schedule, costs);
    makespan = times[0].back().end;
  });
  double by_graph = 0;
  const double graph = Best(3, [&] { by_graph = simulate::TimesByGraph<double>(schedule, costs)[0].back().end; });
  const double build = Best(3, [&] { simulate::ActionGraph{schedule}; });
  fmt::print(
      "(b) {} ranks, {:.2f} million actions, in order: {:.2f} million actions a second\n"
      "    over the graph: {:.2f} million ({:.2f} million with a graph that is there)\n",
      schedule.num_ranks(), actions / 1e6, rate(whole), rate(graph), rate(graph - build));
  if (makespan != by_graph) fmt::print("    DIFFERENT TIMES: {} and {}\n", makespan, by_graph);

  // Half the cards: a node's transfers together ask for more than there is.
  for (cluster::Level& level : cluster.levels) level.group_bytes_per_second = level.link.bytes_per_second * 4;
  const cost::Placement narrow(std::make_shared<const cluster::Cluster>(cluster), 8, replicas,
                               schedule.route.pipeline_size, cost::MeshOrder::tensor_data_pipeline);
  const simulate::ClusterResources resources(schedule, narrow, 1);
  double contended_makespan = 0;
  const double contended =
      Best(3, [&] { contended_makespan = simulate::TimesWithContention(schedule, costs, resources)[0].back().end; });
  fmt::print("(c) with {} shared resources: {:.2f} million actions a second; the step takes {:.4f} times as long\n",
             resources.resources().size(), rate(contended), contended_makespan / makespan);
  fmt::print("    peak of everything {:.2f} GB\n", PeakBytes() / 1e9);
  return makespan == by_graph && rate(whole) >= 5;
}

int Run(int replicas) {
  session::Simulated folded;
  const bool small = Folded(folded);
  std::fflush(stdout);
  const bool fast = Rates(*folded.plan, folded.prediction, replicas);
  return small && fast ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 8); }
