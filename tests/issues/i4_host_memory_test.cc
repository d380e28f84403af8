// Case I4 (https://github.com/deepspeedai/DeepSpeed/issues/3606): nobody knew how much host memory a plan takes. Here
// 1, 2 and 4 thread ranks on one machine with a limit: the estimate is of the machine, counts every rank and its copies
// of a checkpoint, and is refused above the limit, before anything is written.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "session/plan.h"
#include "session/run/train_command.h"

namespace penstock::session {
namespace {

std::string ConfigFile() {
  const std::string path = testing::TempDir() + "/penstock_i4.toml";
  WriteFileAtomically(
      path, "[train]\nsteps = 1\nbatch = 8\nmicro_batch = 2\n[model]\nlayers = 2\nhidden = 64\n[data]\nsequence = 32\n",
      true);
  return path;
}

Plan PlanOf(const std::vector<std::string>& assignments) { return MakePlan(LoadedSettings(ConfigFile(), assignments)); }

TEST(I4, EveryRankOfTheMachineCounts) {
  int64_t before = 0;
  for (const int ranks : {1, 2, 4}) {
    const Plan plan = PlanOf({"parallel.data=" + std::to_string(ranks)});
    ASSERT_EQ(plan.memory.ranks.size(), static_cast<size_t>(ranks));
    int64_t sum = plan.memory.process;
    for (const cost::RankMemory& rank : plan.memory.ranks) {
      EXPECT_GT(rank.load_copy, 0);
      EXPECT_GE(rank.peak(), rank.persistent + rank.load_copy);
      sum += rank.total();
    }
    EXPECT_EQ(plan.memory.machine(), sum);
    EXPECT_GT(plan.memory.machine(), before);
    before = plan.memory.machine();
  }
}

TEST(I4, AboveTheLimitIsRefusedWithWhatWouldHelp) {
  const LoadedSettings one(ConfigFile(), {}), four(ConfigFile(), {"parallel.data=4"});
  const Plan small = MakePlan(one), large = MakePlan(four);
  Settings limited = four.values;
  limited.runtime.memory_limit = small.memory.machine();
  EXPECT_NO_THROW(RequireFits(small, limited));
  try {
    RequireFits(large, limited);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.exit_code(), 2);
    for (const char* words : {"runtime.memory_limit", "mostly", "What would help", "fewer ranks"})
      EXPECT_NE(message.find(words), std::string::npos) << message;
  }
}

TEST(I4, WithoutALimitTheMachineIsTheLimit) {
  EXPECT_GT(MachineMemory(), int64_t{1} << 20);
  EXPECT_NO_THROW(RequireFits(PlanOf({}), Settings{}));
}

TEST(I4, NothingIsWrittenBeforeTheRefusal) {
  const std::string directory = testing::TempDir() + "/penstock_i4_run";
  std::filesystem::remove_all(directory);
  TrainOptions options;
  options.config = ConfigFile();
  options.assignments = {"runtime.memory_limit=1 MiB", "run.dir=" + directory};
  std::ostringstream out, log;
  EXPECT_THROW(RunTrain(options, out, log), DoesNotFit);
  EXPECT_FALSE(std::filesystem::exists(directory));
}

}  // namespace
}  // namespace penstock::session
