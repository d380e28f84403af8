// One replica for all (LowerSpec::fold): the same times as with every replica a rank of its own, exactly, for every
// builder on 64 devices; and refused where replicas are not alike.
#include <gtest/gtest.h>

#include <iostream>

#include "base/error.h"
#include "cost/plan_costs.h"
#include "model/gpt.h"
#include "simulate/shapes.h"

namespace penstock::simulate {
namespace {

using cost::MeshOrder;
using schedule::Builder;
using schedule::LowerSpec;
using schedule::Schedule;

// Nodes of `node` devices, pods of 2 nodes; each level slower than the one below.
std::shared_ptr<const cluster::Cluster> Hierarchy(int64_t node, int64_t devices) {
  cluster::Cluster c;
  c.name = "hierarchy";
  c.devices.resize(1);
  c.devices[0].name = "device";
  c.devices[0].flops_per_second = {{"fp32", 1e12}};
  c.devices[0].memory_bytes_per_second = 1e11;
  c.devices[0].launch_seconds = 1e-6;
  double bandwidth = 1e11, latency = 1e-6;
  for (const auto& [name, size] : {std::pair<const char*, int64_t>{"node", node},
                                   {"pod", 2},
                                   {"cluster", (devices + 2 * node - 1) / (2 * node)}}) {
    cluster::Level level{.name = name, .size = size, .link = {}};
    level.link.bytes_per_second = bandwidth;
    level.link.latency_seconds = latency;
    c.levels.push_back(level);
    bandwidth /= 7;
    latency *= 3;
  }
  return std::make_shared<const cluster::Cluster>(std::move(c));
}

struct Job {
  model::ModelSpec spec;
  model::Partition partition;
  std::vector<model::ModelUnit> units;
  LowerSpec lower;

  Job(int data, int pipeline, int chunks, int micro_batches, const std::string& placement) {
    model::GptConfig config;
    config.layers = pipeline * chunks;
    config.hidden = 64;
    config.heads = 4;
    config.vocabulary = 128;
    config.context = 32;
    config.tied = true;
    spec = model::BuildGptSpec(config);
    partition = model::MakePartition(spec, "even", pipeline * chunks);
    units = model::MakeUnits(spec, partition);
    lower.data = data;
    lower.pipeline = pipeline;
    lower.chunks = chunks;
    lower.micro_batches = data * micro_batches;
    lower.placement = placement;
    const size_t stages = partition.stages();
    for (size_t u = stages; u < units.size(); ++u) {
      std::vector<uint16_t> uses;
      for (const auto& use : units[u].uses) uses.push_back(static_cast<uint16_t>(use.stage));
      lower.shared_parameters.push_back(uses);
    }
    for (size_t s = 0; s < stages; ++s) lower.stage_has_parameters.push_back(!units[s].uses.empty());
  }

  Schedule Build(const Builder& builder, bool fold) const {
    LowerSpec spec = lower;
    spec.fold = fold;
    return Lower(builder, spec);
  }
  Times<double> TimesOf(const Schedule& schedule, const cost::Placement& placement) const {
    const cost::PlanCosts costs({.spec = spec,
                                 .partition = partition,
                                 .units = units,
                                 .schedule = schedule,
                                 .placement = placement,
                                 .arithmetic = cost::OwnArithmetic(model::Precision::fp32),
                                 .samples = 2,
                                 .length = 32,
                                 .sequence_parallel = false,
                                 .selective = false,
                                 .optimizer_states = 2,
                                 .optimizer = "adamw",
                                 .profile = nullptr});
    return TimesInOrder<double>(schedule, costs);
  }
};

// cases.md J6.
TEST(Fold, EqualsUnfoldedOn64Devices) {
  int64_t compared = 0, unlike = 0;
  for (const auto& [name, builder] : Registry<Builder>::All())
    for (const auto& [tensor, data, pipeline] : std::vector<std::array<int, 3>>{{1, 16, 4},
                                                                                {2, 8, 4},
                                                                                {4, 4, 4},
                                                                                {8, 4, 2},
                                                                                {8, 2, 4},
                                                                                {4, 2, 8},
                                                                                {1, 32, 2},
                                                                                {2, 4, 8},
                                                                                {4, 16, 1},
                                                                                {1, 64, 1},
                                                                                {1, 4, 16},
                                                                                {16, 2, 2}})
      for (const std::string& placement : builder.placements)
        for (const MeshOrder order : {MeshOrder::tensor_data_pipeline, MeshOrder::tensor_pipeline_data}) {
          const int chunks = placement == "linear" ? 1 : builder.default_chunks;
          if (Refused(builder, {pipeline, chunks, pipeline, placement})) continue;
          const Job job(data, pipeline, chunks, pipeline, placement);
          const cost::Placement on(Hierarchy(8, 64), tensor, data, pipeline, order);
          if (!on.WhyNotAlike().empty()) {
            ++unlike;
            continue;
          }
          const Schedule one = job.Build(builder, true), all = job.Build(builder, false);
          ASSERT_EQ(one.copies, data);
          ASSERT_EQ(one.num_ranks(), pipeline);
          ASSERT_EQ(all.num_ranks(), data * pipeline);
          const auto folded = Summarise(one, job.TimesOf(one, on)), whole = Summarise(all, job.TimesOf(all, on));
          const std::string where = fmt::format("{} on {}, {} x {} x {}", name, placement, tensor, data, pipeline);
          EXPECT_EQ(folded.makespan, whole.makespan) << where;
          for (int r = 0; r < data * pipeline; ++r) {
            ASSERT_EQ(all.ranks[r].size(), one.ranks[r % pipeline].size()) << where;
            for (size_t i = 0; i < all.ranks[r].size(); ++i) {
              ASSERT_EQ(folded.times[r % pipeline][i].start, whole.times[r][i].start) << where << " rank " << r;
              ASSERT_EQ(folded.times[r % pipeline][i].end, whole.times[r][i].end) << where << " rank " << r;
            }
          }
          ++compared;
        }
  std::cout << fmt::format("  {} meshes compared, {} with replicas that are not alike\n", compared, unlike);
  EXPECT_GT(compared, 150);
}

TEST(Fold, RefusedWhenReplicasAreNotAlike) {
  // Micro-batches do not divide.
  Job job(4, 2, 1, 2, "");
  job.lower.micro_batches = 9;
  try {
    job.Build(Registry<Builder>::Find("gpipe"), true);
    ADD_FAILURE() << "folded";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("9 micro-batches over 4 replicas give them different numbers"),
              std::string::npos)
        << error.what();
  }
  // Pipelines of 4 along nodes of 6: the second crosses one.
  EXPECT_EQ(cost::Placement(Hierarchy(8, 64), 1, 3, 4, MeshOrder::tensor_pipeline_data).WhyNotAlike(), "");
  EXPECT_EQ(cost::Placement(Hierarchy(6, 64), 1, 3, 4, MeshOrder::tensor_pipeline_data).WhyNotAlike(),
            "the link from position 1 to 2 is another in replica 1 than in replica 0");
  // A slow pair of devices, another type of device.
  cluster::Cluster odd = *Hierarchy(8, 64);
  odd.overrides.push_back({.from = 5, .to = 6, .link = {}});
  EXPECT_EQ(
      cost::Placement(std::make_shared<cluster::Cluster>(odd), 1, 2, 4, MeshOrder::tensor_pipeline_data).WhyNotAlike(),
      "the link from position 1 to 2 is another in replica 1 than in replica 0");
  odd.overrides.clear();
  odd.devices.push_back(odd.devices[0]);
  odd.devices[1].name = "other";
  odd.device_of.assign(odd.num_devices(), 0);
  odd.device_of[6] = 1;
  EXPECT_EQ(
      cost::Placement(std::make_shared<cluster::Cluster>(odd), 1, 2, 4, MeshOrder::tensor_pipeline_data).WhyNotAlike(),
      "position 2 is a other in replica 1 and a device in replica 0");
}

}  // namespace
}  // namespace penstock::simulate
