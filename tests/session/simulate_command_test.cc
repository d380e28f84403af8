// What `penstock simulate` says and writes; needs no libtorch.
#include "session/simulate_command.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "paths.h"
#include "session/plan.h"
#include "session/prediction.h"

namespace penstock::session {
namespace {

class Simulate : public testing::Test {
 protected:
  // Nobody's calibration is read.
  void SetUp() override {
    folder_ =
        testing::TempDir() + "/penstock_simulate_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    config_ = folder_ + "/config.toml";
    WriteFileAtomically(config_,
                        "[train]\nbatch = 16\nmicro_batch = 1\n[model]\nlayers = 8\nhidden = 64\nvocabulary = 256\n"
                        "[data]\nsequence = 32\n[parallel]\npipeline = 4\n");
  }
  void TearDown() override { unsetenv("XDG_CONFIG_HOME"); }

  nlohmann::json Json(std::vector<std::string> assignments, const std::string& out = "") const {
    std::ostringstream text;
    EXPECT_EQ(RunSimulate({.config = config_, .assignments = std::move(assignments), .out = out, .json = true}, text),
              0);
    return nlohmann::json::parse(text.str());
  }
  std::string Error(std::vector<std::string> assignments) const {
    std::ostringstream text;
    try {
      RunSimulate({.config = config_, .assignments = std::move(assignments), .out = ""}, text);
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  }

  std::string folder_, config_;
};

// Cases J1, J4: a result says what was simulated, and that nothing was measured.
TEST_F(Simulate, SaysWhatWasSimulatedAndOnWhat) {
  const auto j = Json({"cluster.name='a100-80'"});
  EXPECT_GT(j["actions"].get<int64_t>(), 100);
  EXPECT_EQ(j["messages"].get<int64_t>(), 2 * 3 * 16);
  EXPECT_GT(j["message_bytes"].get<int64_t>(), 0);
  EXPECT_EQ(j["ranks"].size(), 4u);
  EXPECT_FALSE(j["calibrated"].get<bool>());
  std::string warnings = j["warnings"].dump();
  EXPECT_NE(warnings.find("uncalibrated"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("take the step for"), std::string::npos) << warnings;
  EXPECT_TRUE(j["fits"].get<bool>());
}

TEST_F(Simulate, MoreThanADeviceHasDoesNotFit) {
  const auto j = Json({"model.reference='gpt-175b'", "cluster.name='a100-80'", "numerics.precision='bf16'",
                       "parallel.pipeline=2", "train.batch=4"});
  EXPECT_FALSE(j["fits"].get<bool>());
  EXPECT_NE(j["warnings"].dump().find("does not fit"), std::string::npos);
}

TEST_F(Simulate, FoldedReplicasTakeTheSameTime) {
  const std::vector<std::string> plan = {"cluster.name='a100-80'", "parallel.data=8", "train.batch=64",
                                         "cluster.contention=false"};
  auto folded = plan, whole = plan;
  whole.push_back("cluster.fold=false");
  const auto a = Json(folded), b = Json(whole);
  EXPECT_EQ(a["copies"], 8);
  EXPECT_EQ(b["copies"], 1);
  EXPECT_EQ(a["makespan_seconds"], b["makespan_seconds"]);
  EXPECT_EQ(a["tokens_per_second"], b["tokens_per_second"]);
  EXPECT_EQ(a["devices"], b["devices"]);
}

// More ranks than cores take turns.
TEST_F(Simulate, RanksShareCores) {
  const std::string file = folder_ + "/two.toml";
  std::string text = ReadFile(SourceFolder() + "/clusters/generic-cpu.toml");
  WriteFileAtomically(file, text);
  const std::string name = "cluster.name='" + file + "'";
  const auto shared = Json({name}), apart = Json({name, "cluster.contention=false"});
  EXPECT_GT(shared["makespan_seconds"].get<double>(), 1.5 * apart["makespan_seconds"].get<double>());
}

TEST_F(Simulate, ProfilesOverrideAndRangesAreMarked) {
  const std::string file = folder_ + "/profile.json";
  WriteFileAtomically(file,
                      R"({"penstock_profile": 1, "machine": "m", "subjects": {"action:forward": [[1, 10.0, 1]]}})");
  const double without = Json({})["step_seconds"].get<double>();
  EXPECT_GT(Json({"cluster.profile='" + file + "'"})["step_seconds"].get<double>(), without + 150);
}

TEST_F(Simulate, KeepsEverythingInADirectoryAndOverwritesNothing) {
  const std::string out = folder_ + "/out";
  Json({}, out);
  for (const char* name : {"config.toml", "schedule.txt", "plan.json", "timeline_predicted.jsonl", "trace.json",
                           "timeline.svg", "report.html"})
    EXPECT_TRUE(FileSystem::Real().Exists(out + "/" + name)) << name;
  std::ostringstream text;
  EXPECT_THROW(RunSimulate({.config = config_, .assignments = {}, .out = out}, text), UserError);
  EXPECT_NE(ReadFile(out + "/report.html").find("<html"), std::string::npos);
}

TEST_F(Simulate, NamesWhatCannotBe) {
  EXPECT_NE(Error({"cluster.name='a100-88'"}).find("a100-80"), std::string::npos) << Error({"cluster.name='a100-88'"});
  EXPECT_NE(Error({"cluster.name='this-machine'"}).find("calibrate"), std::string::npos);
  EXPECT_NE(Error({"model.reference='gpt-22'"}).find("gpt-22b"), std::string::npos)
      << Error({"model.reference='gpt-22'"});
  EXPECT_NE(Error({"parallel.recompute='9'"}).find("stages 0 to 3"), std::string::npos);
  EXPECT_NE(Error({"parallel.recompute='some'"}).find("selective"), std::string::npos);
  EXPECT_NE(Error({"cluster.name='generic-cpu'", "parallel.data=2000"}).find("devices"), std::string::npos);
}

// What is only simulated is refused where it would run.
TEST_F(Simulate, TrainingRefusesWhatOnlySimulates) {
  for (const char* key : {"parallel.tensor=2", "model.reference='gpt-22b'", "parallel.recompute='selective'"}) {
    const LoadedSettings settings(config_, {key});
    EXPECT_THROW(MakePlan(settings), UserError) << key;
  }
}

}  // namespace
}  // namespace penstock::session
