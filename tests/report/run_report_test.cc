// Metrics, progress, and the report of a run directory.
#include "report/run_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "report/progress.h"
#include "report/run_files.h"
#include "report/timeline_io.h"
#include "small_timeline.h"

namespace penstock::report {
namespace {

class RunDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = (std::filesystem::temp_directory_path() /
                  ("penstock_report_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) +
                   "_" + std::to_string(::getpid())))
                     .string();
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Path(std::string_view name) const { return directory_ + "/" + std::string(name); }
  std::string directory_;
};

StepMetrics Step(int64_t step, double loss) {
  StepMetrics m;
  m.step = step;
  m.loss = loss;
  m.grad_norm = 1.5;
  m.learning_rate = 1e-3;
  m.tokens = 512;
  m.seconds = 0.25;
  m.tokens_per_second = 2048;
  m.peak_bytes = {1 << 20, 2 << 20};
  return m;
}

TEST_F(RunDirectory, MetricsReadBackAndResumeWithoutDoubles) {
  const std::string path = Path(kMetricsFile);
  EXPECT_TRUE(ReadMetrics(path).empty());
  {
    MetricsWriter writer(path, 1);
    for (int i = 1; i <= 5; ++i) writer.Write(Step(i, 1.0 / i));
    EXPECT_EQ(ReadMetrics(path).size(), 5u);  // there before the writer closes
  }
  {
    MetricsWriter writer(path, 4);  // resumed from a checkpoint after step 3
    StepMetrics bad = Step(4, NAN);
    bad.applied = false;
    bad.grad_norm.reset();
    writer.Write(bad);
  }
  const auto steps = ReadMetrics(path);
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[2].loss, 1.0 / 3);
  EXPECT_EQ(steps[2].peak_bytes, (std::vector<int64_t>{1 << 20, 2 << 20}));
  EXPECT_TRUE(std::isnan(steps[3].loss));
  EXPECT_FALSE(steps[3].grad_norm.has_value());
  EXPECT_FALSE(steps[3].applied);
}

TEST_F(RunDirectory, ACutLastLineIsIgnoredAndADamagedOneNamed) {
  const std::string path = Path(kMetricsFile);
  const std::string line = PrintMetrics(Step(1, 2)) + "\n";
  WriteFileAtomically(path, line + line.substr(0, 20));
  EXPECT_EQ(ReadMetrics(path).size(), 1u);
  WriteFileAtomically(path, line + "{\"step\":2}\n" + line, true);
  try {
    ReadMetrics(path);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, path.size() + 3), path + ":2:");
  }
}

TEST_F(RunDirectory, ReportIsShortAndComplete) {
  const auto s = PipelineOf("1f1b", 16, 1, 32);
  schedule::Timeline t = Replayed(s);
  SaveTimeline(Path(kPredictedTimelineFile), t);
  for (auto& e : t.events) e.provenance = schedule::Provenance::measured;
  for (int r = 0; r < 16; ++r) t.memory.push_back({r, 1, BufferClass::activation, Tier::device, 1000 * (r + 1)});
  SaveTimeline(Path(kMeasuredTimelineFile), t);
  WriteFileAtomically(Path(kScheduleFile), schedule::PrintSchedule(s));
  MetricsWriter writer(Path(kMetricsFile), 1);
  for (int i = 1; i <= 200; ++i) writer.Write(Step(i, 5.0 / i));

  const RunReport report = ReadRun(directory_);
  const std::string text = report.ToText();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 42) << text;
  for (const char* part : {"1f1b: 16 ranks, 16 stages, 32 micro-batches", "first 5.0000 (step 1)",
                           "lowest 0.0250 (step 200)", "2.05 k tokens/s", "bubble 31.9 %",
                           "the prediction is 0.0 % too long; predicted bubble", "avoidable wait: 0", "and 8 ranks"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;

  const auto json = nlohmann::json::parse(report.ToJson());
  EXPECT_NEAR(json.at("measured").at("bubble_fraction").get<double>(), 15.0 / 47, 1e-9);
  EXPECT_EQ(json.at("measured").at("ranks").size(), 16u);
  EXPECT_EQ(json.at("measured").at("ranks")[3].at("peak_bytes"), 4000);
  EXPECT_EQ(json.at("steps"), 200);
  EXPECT_EQ(json.at("avoidable_wait").at("actions"), 0);
}

TEST_F(RunDirectory, WithBothTimelinesTheReportSaysWhyTheyPart) {
  const auto s = PipelineOf("1f1b", 2, 1, 2);
  schedule::Timeline t = Replayed(s);
  SaveTimeline(Path(kPredictedTimelineFile), t);
  for (auto& e : t.events) e.start *= 2, e.end *= 2;
  SaveTimeline(Path(kMeasuredTimelineFile), t);
  WriteFileAtomically(Path(kScheduleFile), schedule::PrintSchedule(s));
  const RunReport report = ReadRun(directory_);
  ASSERT_TRUE(report.gap.has_value());
  EXPECT_DOUBLE_EQ(report.gap->difference(), 9);
  EXPECT_NE(report.ToText().find("took 100 % longer than predicted"), std::string::npos) << report.ToText();
  EXPECT_EQ(nlohmann::json::parse(report.ToJson()).at("gap").at("measured_step"), 18.0);
}

TEST_F(RunDirectory, OnlyMetricsIsEnoughAndNothingIsAnError) {
  EXPECT_THROW(ReadRun(directory_), UserError);
  EXPECT_THROW(ReadRun(Path("missing")), UserError);
  MetricsWriter writer(Path(kMetricsFile), 1);
  writer.Write(Step(1, 3));
  const std::string text = ReadRun(directory_).ToText();
  EXPECT_NE(text.find("first 3.0000"), std::string::npos);
  EXPECT_NE(text.find("peak per rank: 1.00 MiB, 2.00 MiB"), std::string::npos) << text;
}

TEST(Sparkline, GoesFromLowToHighAndMarksWhatIsNotFinite) {
  EXPECT_EQ(Sparkline({0, 1}, 10), "▁█");
  EXPECT_EQ(Sparkline({3, 3, 3}, 10), "▁▁▁");
  EXPECT_EQ(Sparkline({0, NAN, 1}, 10), "▁!█");
  EXPECT_EQ(Sparkline({}, 10), "");
  EXPECT_EQ(Sparkline(std::vector<double>(1000, 1.0), 3), "▁▁▁");
}

TEST(Progress, LinesOfItsOwnOutsideATerminalAreFew) {
  std::ostringstream out;
  double now = 0;
  Progress progress(out, /*terminal=*/false, 1, 200, [&] { return now; });
  for (int i = 1; i <= 200; ++i) {
    now += 0.25;
    progress.Update(Step(i, 2.5));
  }
  progress.Finish();
  const std::string text = out.str();
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_GE(lines, 20);
  EXPECT_LE(lines, 24);
  EXPECT_EQ(text.substr(0, text.find('\n')), "step   1/200  loss 2.5000  norm 1.5  2.05 k tokens/s  49.75 s left");
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("step 200/200"), std::string::npos);
}

TEST(Progress, ATerminalLineIsRewrittenAndASkippedUpdateStays) {
  std::ostringstream out;
  double now = 0;
  Progress progress(out, /*terminal=*/true, 1, 100, [&] { return now; });
  for (int i = 1; i <= 100; ++i) {
    now += 0.01;
    StepMetrics m = Step(i, 2.5);
    m.applied = i != 50;
    progress.Update(m);
  }
  progress.Finish();
  progress.Finish();
  const std::string text = out.str();
  EXPECT_LT(std::count(text.begin(), text.end(), '\r'), 12);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("update skipped (not finite)\n"), std::string::npos);
}

}  // namespace
}  // namespace penstock::report
