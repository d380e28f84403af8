// A training run is predicted, measured and held against its prediction; what it measured serves the next prediction.
#include "session/prediction.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "report/run_report.h"
#include "session/profile_file.h"
#include "session/run/emulate_command.h"
#include "session/run/train_command.h"

namespace penstock::session {
namespace {

class PredictedRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        testing::TempDir() + "/penstock_predicted_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/text");
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    std::string text;
    for (int i = 0; i < 4000; ++i) text += "line " + std::to_string(i * i) + "\n";
    WriteFileAtomically(folder_ + "/text/a.txt", text);
    config_ = folder_ + "/config.toml";
    WriteFileAtomically(
        config_, "[run]\ndir = \"" + folder_ + "/run\"\n[train]\nsteps = 4\nbatch = 8\nmicro_batch = 2\n" +
                     "[model]\nlayers = 4\nhidden = 32\nheads = 4\n[data]\nsource = \"text\"\npath = \"" + folder_ +
                     "/text\"\nsequence = 16\n[parallel]\npipeline = 2\n[checkpoint]\nat_end = false\n");
  }
  void TearDown() override { unsetenv("XDG_CONFIG_HOME"); }
  void Train(std::vector<std::string> assignments = {}) {
    std::ostringstream out, log;
    ASSERT_EQ(RunTrain({.config = config_, .assignments = std::move(assignments), .json = false}, out, log), 0);
    printed_ = out.str() + log.str();
  }
  std::string folder_, config_, printed_;
};

TEST_F(PredictedRun, HasBothTimelinesAndSaysWhereTheyPart) {
  Train();
  const report::RunReport run = report::ReadRun(folder_ + "/run");
  ASSERT_TRUE(run.predicted && run.measured);
  EXPECT_EQ(run.measured->events.size(), 2 * run.predicted->events.size());  // two steps are recorded
  EXPECT_FALSE(run.predicted->memory.empty());
  EXPECT_FALSE(run.measured->memory.empty());
  EXPECT_NE(printed_.find("predicted: "), std::string::npos) << printed_;
  EXPECT_NE(printed_.find("uncalibrated"), std::string::npos) << printed_;
  EXPECT_NE(run.ToText().find("critical path"), std::string::npos) << run.ToText();
  for (const char* name : {"report.html", "trace.json", "profile.json"})
    EXPECT_TRUE(FileSystem::Real().Exists(folder_ + "/run/" + name)) << name;
  const std::string trace = ReadFile(folder_ + "/run/trace.json");
  for (const char* lane : {"predicted rank 0", "measured rank 1"}) EXPECT_NE(trace.find(lane), std::string::npos);
}

// Every price of a layer comes from the run itself, none is extrapolated; layers of one kind share a subject.
TEST_F(PredictedRun, ItsProfilePricesTheSamePlan) {
  Train({"report.timeline_first=0", "report.timeline_steps=4"});
  const std::string file = folder_ + "/run/profile.json";
  const schedule::Profile profile = LoadProfiles(file);
  int layers = 0;
  for (const auto& [subject, samples] : profile.subjects()) {
    layers += subject.rfind("layer:", 0) == 0;
    for (const auto& sample : samples) EXPECT_GT(sample.count, 0) << subject;
  }
  EXPECT_EQ(layers, 6);  // embedding, block, head: forward and backward
  for (const char* plan : {"parallel.pipeline=1", "parallel.pipeline=2", "parallel.recompute='full'"}) {
    const LoadedSettings settings(config_, {"cluster.profile='" + file + "'", plan});
    const Simulated simulated = SimulatePlan(settings);
    EXPECT_EQ(simulated.prediction.costs->computed_prices(), 0) << plan;
    EXPECT_TRUE(simulated.prediction.calibrated);
    EXPECT_GT(simulated.prediction.step_seconds, 0);
  }
  const LoadedSettings other(config_, {"cluster.profile='" + file + "'", "model.hidden=64"});
  EXPECT_EQ(SimulatePlan(other).prediction.costs->measured_prices(), 0);  // another layer
}

// Micro-batches of 4, 3 and 3 samples: times go under their own sizes, not under that of the largest.
TEST_F(PredictedRun, RaggedMicroBatchesAreProfiledUnderTheirSizes) {
  Train({"train.batch=10", "train.micro_batch=4", "data.ragged=true"});
  const schedule::Profile profile = LoadProfiles(folder_ + "/run/profile.json");
  int checked = 0;
  for (const auto& [subject, samples] : profile.subjects()) {
    if (subject.rfind("layer:", 0) != 0) continue;
    ++checked;
    ASSERT_EQ(samples.size(), 2u) << subject;
    EXPECT_EQ(samples[0].size, 3) << subject;
    EXPECT_EQ(samples[1].size, 4) << subject;
    EXPECT_EQ(samples[0].count, 2 * samples[1].count) << subject;
  }
  EXPECT_EQ(checked, 6);
}

TEST_F(PredictedRun, SplitBackwardsAreProfiledInHalves) {
  Train({"parallel.schedule='zb-h1'"});
  const schedule::Profile profile = LoadProfiles(folder_ + "/run/profile.json");
  bool input = false, weight = false;
  for (const auto& [subject, samples] : profile.subjects()) {
    input =
        input || (subject.find(".block.") != std::string::npos && subject.find("backward_input") != std::string::npos);
    weight = weight ||
             (subject.find(".block.") != std::string::npos && subject.find("backward_weight") != std::string::npos);
  }
  EXPECT_TRUE(input && weight);
}

// The counting allocator against the estimate: never above it, and not far below, whatever the schedule keeps.
TEST_F(PredictedRun, MeasuredMemoryIsCloseUnderThePredicted) {
  for (const char* family : {"gpt2", "llama"}) {
    for (const char* plan :
         {"parallel.pipeline=1", "parallel.schedule='1f1b'", "parallel.schedule='zb-h1'", "parallel.schedule='gpipe'",
          "parallel.recompute='full'", "train.micro_batch=1", "numerics.precision='fp16'"}) {
      const std::string run = folder_ + "/memory";
      std::filesystem::remove_all(run);
      Train({"run.dir='" + run + "'", std::string("model.family='") + family + "'", "model.hidden=96",
             "data.sequence=64", "train.steps=2", "optimizer.clip=1.0", plan});
      const auto predicted = nlohmann::json::parse(ReadFile(run + "/plan.json"))["predicted_peak_bytes"];
      std::istringstream lines(ReadFile(run + "/metrics.jsonl"));
      std::string line;
      while (std::getline(lines, line)) {
        const auto measured = nlohmann::json::parse(line)["peak_bytes"];
        ASSERT_EQ(measured.size(), predicted.size());
        for (size_t r = 0; r < measured.size(); ++r) {
          const double ratio = measured[r].get<double>() / predicted[r].get<double>();
          EXPECT_LE(ratio, 1.0) << family << " " << plan << ", rank " << r << ": " << line;
          // Of 16-bit operands the estimate has a rounded and a widened copy of the largest, which are rarely at the
          // peak.
          const bool narrow = std::string(plan).find("precision") != std::string::npos;
          EXPECT_GE(ratio, narrow ? 0.90 : 0.93) << family << " " << plan << ", rank " << r << ": " << line;
        }
      }
    }
  }
}

TEST_F(PredictedRun, IsEmulated) {
  std::ostringstream out;
  const std::string kept = folder_ + "/emulated";
  ASSERT_EQ(
      RunEmulate({.config = config_, .assignments = {"parallel.pipeline=4"}, .seconds = 0.5, .out = kept, .json = true},
                 out),
      0);
  const auto j = nlohmann::json::parse(out.str());
  EXPECT_EQ(j["ranks"], 4);
  EXPECT_GE(j["ratio"].get<double>(), 0.95);  // how close it is: build/emulated_bench
  const report::RunReport run = report::ReadRun(kept);
  ASSERT_TRUE(run.measured);
  for (const schedule::Event& event : run.measured->events) EXPECT_EQ(event.provenance, schedule::Provenance::emulated);
  EXPECT_THROW(RunEmulate({.config = config_, .assignments = {}, .seconds = 0, .out = ""}, out), UserError);
}

}  // namespace
}  // namespace penstock::session
