// From settings to a simulation: when replicas are folded, and schedules written by hand.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "schedule/text.h"
#include "session/prediction.h"

namespace penstock::session {
namespace {

Simulated Simulation(const std::vector<std::string>& assignments) {
  LoadedSettings settings;
  settings.config.LoadText(R"(
    [model]
    layers = 6
    hidden = 64
    heads = 4
    [train]
    batch = 32
    micro_batch = 1
    [parallel]
    pipeline = 2
    data = 16
    [cluster]
    name = "a100-80"
  )",
                           "job");
  for (const std::string& assignment : assignments) settings.config.Set(assignment);
  settings.config.Finish();
  return SimulatePlan(settings);
}

std::string Fact(const Prediction& prediction, const std::string& name) {
  for (const auto& [key, value] : prediction.facts)
    if (key == name) return value;
  return "";
}

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/session_simulate_" + name;
  WriteFileAtomically(path, text, /*overwrite=*/true);
  return path;
}

// `per_node`: network cards of a node of 8, in cards.
std::string Cluster(double cards) {
  return "cluster.name='" +
         Write("cluster.toml", fmt::format(R"(
    [cluster]
    name = "cards"
    summary = "for a test"
    [[device]]
    name = "chip"
    summary = "a chip"
    memory_bytes = "80 GiB"
    memory_bytes_per_second = "2 TB/s"
    flops_per_second = {{ fp32 = 19.5e12 }}
    launch_seconds = 1e-6
    source = "stated"
    [[level]]
    name = "node"
    size = 8
    latency_seconds = 1e-6
    bytes_per_second = "100 GB/s"
    source = "stated"
    [[level]]
    name = "cluster"
    size = 8
    latency_seconds = 2e-6
    bytes_per_second = 1e8
    group_bytes_per_second = {}
    source = "stated"
  )",
                                           cards * 1e8)) +
         "'";
}

TEST(SimulatePlan, FoldsWhereThatChangesNothing) {
  const Simulated folded = Simulation({Cluster(8)}), unfolded = Simulation({Cluster(8), "cluster.fold=false"});
  EXPECT_EQ(folded.plan->schedule.copies, 16);
  EXPECT_EQ(folded.plan->schedule.num_ranks(), 2);
  EXPECT_EQ(unfolded.plan->schedule.copies, 1);
  EXPECT_EQ(unfolded.plan->schedule.num_ranks(), 32);
  EXPECT_EQ(folded.prediction.step_seconds, unfolded.prediction.step_seconds);
  EXPECT_EQ(folded.prediction.tokens_per_second, unfolded.prediction.tokens_per_second);
  EXPECT_EQ(folded.prediction.model_flops, unfolded.prediction.model_flops);
  EXPECT_EQ(folded.prediction.peak_flops, unfolded.prediction.peak_flops);
  EXPECT_EQ(folded.prediction.memory_bytes[1], unfolded.prediction.memory_bytes[31]);
  EXPECT_EQ(Fact(folded.prediction, "not folded"), "");
}

TEST(SimulatePlan, DoesNotFoldReplicasThatShareNetworkCards) {
  // The 8 replicas of a position in one node send at once over 2 cards.
  const Simulated shared = Simulation({Cluster(2)}), alone = Simulation({Cluster(2), "cluster.contention=false"});
  EXPECT_EQ(shared.plan->schedule.copies, 1);
  EXPECT_EQ(shared.plan->schedule.num_ranks(), 32);
  EXPECT_EQ(Fact(shared.prediction, "not folded"), "replicas share network cards");
  EXPECT_EQ(alone.plan->schedule.copies, 16);
  EXPECT_GT(shared.prediction.step_seconds, 1.01 * alone.prediction.step_seconds);
}

// A ring is priced by what the cards of a node carry; sharing them does not charge for them again.
TEST(SimulatePlan, CollectivesPayForTheCardsOfANodeOnce) {
  const std::vector<std::string> job = {Cluster(2), "parallel.pipeline=1"};
  auto alone = job;
  alone.emplace_back("cluster.contention=false");
  EXPECT_DOUBLE_EQ(Simulation(job).prediction.step_seconds, Simulation(alone).prediction.step_seconds);
}

// Cells of six devices on nodes of eight: some lie in a node, some across two.
TEST(SimulatePlan, TensorCellsThatStraddleNodesPayForIt) {
  const Simulated s =
      Simulation({"model.hidden=192", "model.heads=12", "parallel.tensor=6", "parallel.pipeline=4", "parallel.data=1"});
  const auto forward = [&](int rank) {
    for (const schedule::Action& action : s.plan->schedule.ranks[rank])
      if (action.key.kind == schedule::Kind::forward) return s.prediction.costs->PriceOf(rank, action).seconds;
    return 0.0;
  };
  // Devices 12 to 17 lie in two nodes, 18 to 23 in one; both stages are of alike blocks.
  ASSERT_EQ(s.plan->partition.first[3] - s.plan->partition.first[2],
            s.plan->partition.first[2] - s.plan->partition.first[1]);
  EXPECT_GT(forward(1), 0);
  EXPECT_NE(s.prediction.placement->CellLink(2).bytes_per_second, s.prediction.placement->CellLink(0).bytes_per_second);
  EXPECT_DOUBLE_EQ(forward(1), forward(2));  // devices 6 to 11 and 12 to 17 both cross
  EXPECT_GT(forward(1) - forward(0), 0);
}

// Ranks of one machine share its memory: what one of them needs says little.
TEST(SimulatePlan, RanksOfAMachineAreCountedTogether) {
  for (const char* contention : {"cluster.contention=true", "cluster.contention=false"}) {
    const Simulated s = Simulation({"cluster.name=generic-cpu", "parallel.data=8", "train.micro_batch=4", contention});
    EXPECT_EQ(s.plan->schedule.copies, 1) << contention;
    ASSERT_EQ(s.prediction.machine_bytes.size(), 1u);
    int64_t sum = 0;
    for (const cost::RankMemory& rank : s.plan->memory.ranks) sum += rank.total();
    EXPECT_EQ(s.prediction.machine_bytes[0], sum + s.plan->memory.process);
    EXPECT_EQ(s.prediction.machine_bytes[0], s.plan->memory.machine());
  }
}

TEST(ThisMachine, IsAssumedWhereTheEnvironmentNamesNoFolder) {
  const char* home = std::getenv("HOME");
  const std::string kept = home == nullptr ? "" : home;
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const std::string kept_config = config == nullptr ? "" : config;
  unsetenv("HOME");
  unsetenv("XDG_CONFIG_HOME");
  EXPECT_EQ(ThisMachine()->name, "generic-cpu");
  if (home != nullptr) setenv("HOME", kept.c_str(), 1);
  if (config != nullptr) setenv("XDG_CONFIG_HOME", kept_config.c_str(), 1);
}

TEST(SimulatePlan, DoesNotFoldReplicasThatAreNotAlike) {
  // 33 micro-batches over 16 replicas; pipelines of 3 along nodes of 8.
  EXPECT_EQ(Simulation({Cluster(8), "train.batch=33", "data.ragged=true"}).plan->schedule.copies, 1);
  const Simulated crossing = Simulation({Cluster(8), "parallel.pipeline=3", "cluster.order='tensor_pipeline_data'"});
  EXPECT_EQ(crossing.plan->schedule.copies, 1);
  EXPECT_NE(Fact(crossing.prediction, "not folded").find("is another in replica 2 than in replica 0"),
            std::string::npos)
      << Fact(crossing.prediction, "not folded");
}

// A file with compute alone, and the whole step with its messages: both give what the builder gives.
TEST(SimulatePlan, TakesSchedulesWrittenByHand) {
  const std::vector<std::string> job = {"parallel.data=1", "train.batch=4"};
  const auto with = [&](const std::string& file) {
    auto assignments = job;
    assignments.push_back("parallel.schedule='" + file + "'");
    return Simulation(assignments);
  };
  const Simulated built = Simulation(job);
  const Simulated compute = with(Write(
      "compute.sched", "penstock schedule 1\nrank 0: F0 F1 B0 F2 B1 F3 B2 B3\nrank 1: F0 B0 F1 B1 F2 B2 F3 B3\n"));
  const Simulated whole = with(Write("whole.sched", schedule::PrintSchedule(built.plan->schedule)));
  for (const Simulated* written : {&compute, &whole}) {
    EXPECT_EQ(written->prediction.step_seconds, built.prediction.step_seconds);
    EXPECT_EQ(written->prediction.simulation.actions, built.prediction.simulation.actions);
    EXPECT_EQ(written->prediction.simulation.messages, 8);
    EXPECT_EQ(written->prediction.memory_bytes, built.prediction.memory_bytes);
  }
  // Another order by hand: all forwards first. As long, and more memory on the last rank.
  const Simulated gpipe = with(
      Write("gpipe.sched", "penstock schedule 1\nrank 0: F0 F1 F2 F3 B0 B1 B2 B3\nrank 1: F0 F1 F2 F3 B0 B1 B2 B3\n"));
  EXPECT_GT(gpipe.prediction.memory_bytes[1], built.prediction.memory_bytes[1]);
  EXPECT_NEAR(gpipe.prediction.step_seconds, built.prediction.step_seconds, 0.05 * built.prediction.step_seconds);
}

}  // namespace
}  // namespace penstock::session
