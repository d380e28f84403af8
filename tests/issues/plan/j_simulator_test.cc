// Public reports of other simulators (cases.md J1, J2, J6): success with nothing simulated, no progress and no message,
// and a trace of few devices for a question about many.
#include "issues/plan/simulated.h"
#include "schedule/builder.h"
#include "schedule/lower.h"
#include "schedule/text.h"
#include "session/prediction.h"
#include "simulate/simulate.h"

namespace penstock {
namespace {

using simulated::Json;
using simulated::Refusal;
using simulated::ScheduleFile;
using simulated::Text;
using simulated::Write;
using testing::TempDir;

#define EXPECT_SAYS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST(IssueJ1, NothingToSimulateIsAnError) {
  EXPECT_SAYS(Refusal({"parallel.schedule='" + Write("empty.sched", "") + "'"}),
              "empty.sched:0: there is nothing in it");
  EXPECT_SAYS(Refusal({ScheduleFile("head", "")}), "head.sched:1: there is no 'rank' list in it");
  EXPECT_SAYS(Refusal({ScheduleFile("idle", "rank 0\nrank 1\n")}), "stages");
  EXPECT_SAYS(Refusal({"parallel.schedule='" + TempDir() + "/no_such.sched'"}), "no_such.sched");
  EXPECT_SAYS(Refusal({"parallel.schedule='1f1c'"}), "did you mean '1f1b'?");

  schedule::Schedule nothing;
  nothing.name = "nothing";
  nothing.ranks.resize(2);
  const schedule::UniformSeconds prices({});
  try {
    simulate::Simulate({.schedule = nothing, .costs = prices});
    ADD_FAILURE() << "a result";
  } catch (const UserError& error) {
    EXPECT_SAYS(std::string(error.what()), "the schedule 'nothing' has no actions");
  }
}

TEST(IssueJ1, AFileForOtherRanksIsAnError) {
  EXPECT_SAYS(Refusal({ScheduleFile("three", "rank 0: F0 B0\nrank 1: F0 B0\nrank 2: F0 B0\n")}),
              "the schedule file has 3 stages, the job has 2");
  EXPECT_SAYS(Refusal({ScheduleFile("few", "rank 0: F0 F1 B0 B1\nrank 1: F0 B0 F1 B1\n")}),
              "the schedule file has 2 micro-batches per replica, the job has 16");
}

TEST(IssueJ1, AResultSaysHowMuchWasSimulated) {
  const auto json = Json({});
  EXPECT_EQ(json["ranks"].size(), 2u);
  // 16 micro-batches: forward, backward, a message each way; reduction, norms, check and updates.
  EXPECT_EQ(json["kinds"]["forward"]["count"], 32);
  EXPECT_EQ(json["messages"], 32);
  int64_t counted = 0;
  for (const auto& [kind, what] : json["kinds"].items()) counted += what["count"].get<int64_t>();
  EXPECT_EQ(json["actions"], counted);
  // As much back as forth.
  EXPECT_EQ(json["message_bytes"], 32 * json["kinds"]["send:activation"]["bytes"].get<int64_t>() / 16);
  const std::string text = Text({});
  EXPECT_SAYS(text, "simulated  " + std::to_string(counted) + " actions, 32 messages, ");
  EXPECT_SAYS(text, "1 tensor x 1 data x 2 pipeline = 2 devices");
}

// A whole step of 2 ranks as a file, changed by hand.
std::string WholeStep() {
  session::LoadedSettings settings;
  settings.config.LoadText(simulated::kJob, "job");
  settings.config.Finish();
  return schedule::PrintSchedule(session::SimulatePlan(settings).plan->schedule);
}
std::string Changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in\n" << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(IssueJ2, WhatCannotProceedIsNamed) {
  const std::string whole = WholeStep();
  const auto refusal = [](const std::string& text) {
    return Refusal({"parallel.schedule='" + Write("changed.sched", text) + "'"});
  };
  // A receive without a sender, and a send that nobody receives.
  EXPECT_SAYS(refusal(Changed(whole, "  send:activation 0.3 ", "  # send:activation 0.3 ")),
              "'recv:activation 0.3 <- 0' on rank 1 has no sender");
  EXPECT_SAYS(refusal(Changed(whole, "  recv:activation 0.3 ", "  # recv:activation 0.3 ")),
              "'send:activation 0.3 -> 1' on rank 0 has no receiver");
  // A group that names a rank that is not there.
  const std::string group = refusal(Changed(whole, "= 0 1", "= 0 1 7"));
  EXPECT_SAYS(group, "7");
  EXPECT_SAYS(group, "group");
  // Both ranks wait for the other's first message.
  const std::string first = "\nrank 0\n", second = "\nrank 1\n";
  std::string stuck = Changed(whole, first, first + "  recv:gradient 1.0 <-1\n");
  const size_t own = stuck.find("  recv:gradient 1.0 ", stuck.find(first) + first.size() + 20);
  ASSERT_NE(own, std::string::npos);
  stuck.replace(own, 2, "# ");
  const std::string said = refusal(stuck);
  EXPECT_SAYS(said,
              "eager transport: does not complete: rank 0 waits at 'recv:gradient 1.0 <- 1' for rank 1, which waits "
              "at 'recv:activation 0.0 <- 0' for rank 0");
}

// The engines themselves, where nobody verified before.
TEST(IssueJ2, AnEmptyQueueWithActionsLeftIsAWaitGraph) {
  schedule::Schedule schedule = schedule::ParseSchedule(WholeStep());
  auto& list = schedule.ranks[0];
  list.erase(std::find_if(list.begin(), list.end(),
                          [](const schedule::Action& a) { return a.key.kind == schedule::Kind::send; }));
  const schedule::UniformSeconds prices({});
  for (const auto transport : {schedule::Transport::eager, schedule::Transport::channelled}) {
    try {
      // The first message is missing: the others are not those that are waited for.
      simulate::Simulate({.schedule = schedule, .costs = prices, .transport = transport});
      ADD_FAILURE() << "a result";
    } catch (const UserError& error) {
      EXPECT_SAYS(std::string(error.what()), "message 0 is sent as send:activation 0.1 -> 1 but received as");
    }
  }
  for (auto& rank : schedule.ranks)
    std::erase_if(
        rank, [](const schedule::Action& a) { return a.key.kind == schedule::Kind::send && a.key.unit.stage == 0; });
  try {
    simulate::Simulate({.schedule = schedule, .costs = prices});
    ADD_FAILURE() << "a result";
  } catch (const UserError& error) {
    EXPECT_SAYS(std::string(error.what()), "does not finish: ");
    EXPECT_SAYS(std::string(error.what()),
                "rank 1: recv:activation 0.0 <- 0 waits for its send, which rank 0 does not issue");
  }
}

constexpr const char* kCluster = R"(
[cluster]
name = "small"
summary = "for a test"
[[device]]
name = "chip"
summary = "a chip"
count = 16
memory_bytes = "80 GiB"
memory_bytes_per_second = "2 TB/s"
flops_per_second = { fp32 = 19.5e12 }
launch_seconds = 5e-6
source = "stated"
[[level]]
name = "node"
size = 18
latency_seconds = 1e-6
bytes_per_second = "100 GB/s"
source = "stated"
)";

TEST(IssueJ2, InputsAreValidated) {
  // 18 nodes declared, 16 devices.
  const std::string uneven = Refusal({"cluster.name='" + Write("uneven.toml", kCluster) + "'"});
  EXPECT_SAYS(uneven, "16 devices declared but levels make 18 (node 18)");
  EXPECT_SAYS(uneven, "uneven.toml:");
  // A device that computes nothing in this precision; a cluster that there is not.
  const std::string even = "cluster.name='" + Write("even.toml", Changed(kCluster, "size = 18", "size = 16")) + "'";
  EXPECT_SAYS(Refusal({even, "numerics.precision='bf16'"}), "device 'chip' has no peak for bf16; it has one for: fp32");
  EXPECT_SAYS(Refusal({"cluster.name='h1000'"}), "there is no cluster named 'h1000'");
  // More devices than there are: a machine of one kind is taken to be larger, and the result says so.
  const auto larger = Json({even, "parallel.data=9", "train.batch=18"});
  EXPECT_EQ(larger["devices"], 18);
  EXPECT_SAYS(larger["facts"]["cluster"].get<std::string>(), "enlarged from 16 to 18 devices");
}

// 10,000 ranks: the schedule is generated for them, and one replica that stands for all gives what 64 devices give when
// each is simulated.
TEST(IssueJ6, GeneratedNotTraced) {
  const auto large = Json({"parallel.tensor=4", "parallel.data=1250", "train.batch=2500"});
  EXPECT_EQ(large["devices"], 10000);
  EXPECT_EQ(large["copies"], 1250);
  EXPECT_GT(large["actions"], 0);
  for (const char* schedule : {"1f1b", "zb-h1", "gpipe"}) {
    const std::vector<std::string> job = {"parallel.data=8", "parallel.tensor=4", "train.batch=32",
                                          std::string("parallel.schedule='") + schedule + "'"};
    auto unfolded = job;
    unfolded.push_back("cluster.fold=false");
    const auto one = Json(job), all = Json(unfolded);
    EXPECT_EQ(one["devices"], 64);
    EXPECT_EQ(one["copies"], 8);
    EXPECT_EQ(all["copies"], 1);
    EXPECT_EQ(one["actions"].get<int64_t>() * 8, all["actions"].get<int64_t>());
    EXPECT_EQ(one["step_seconds"], all["step_seconds"]) << schedule;
    for (size_t r = 0; r < all["ranks"].size(); ++r) EXPECT_EQ(one["ranks"][r % 2], all["ranks"][r]) << schedule << r;
  }
}

}  // namespace
}  // namespace penstock
