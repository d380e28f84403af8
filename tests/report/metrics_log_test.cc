#include "report/metrics_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "checkpoint/temporary_directory.h"
#include "reference.h"
#include "report/run_files.h"

namespace penstock::report {
namespace {

StepMetrics Step(int64_t step, double shift = 0) {
  StepMetrics m;
  m.step = step;
  m.loss = 4 - 0.25 * static_cast<double>(step) + shift;
  m.grad_norm = 1.5;
  m.learning_rate = 0.001;
  m.tokens = 128;
  m.seconds = 0.5;
  m.tokens_per_second = 256;
  m.peak_bytes = {1000, 3000, 2000};
  if (step % 2 == 0) m.eval = EvalMetrics{.loss = 3, .bits_per_byte = 4.25, .accuracy = 0.125, .tokens = 77};
  return m;
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// The test vectors of RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
TEST(TensorBoard, Crc32c) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(Crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(std::string(rising.rbegin(), rising.rend())), 0x113FDB5Cu);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

// Byte for byte what protobuf and TensorFlow's record writer make of this event.
TEST(TensorBoard, AnEventIsEncodedAsTheFormatSays) {
  const std::string event = SummaryEvent(2.0, 300, {{"a", 0.5}});
  EXPECT_EQ(Hex(event),
            "090000000000000040"  // 1: wall_time = 2.0
            "10ac02"              // 2: step = 300
            "2a0a"                // 5: summary of 10 bytes
            "0a08"                //   1: value of 8 bytes
            "0a0161"              //     1: tag "a"
            "150000003f");        //     2: simple_value 0.5f
  const std::string record = EventRecord(event);
  ASSERT_EQ(record.size(), event.size() + 16);
  EXPECT_EQ(Hex(record.substr(0, 8)), "1800000000000000");
  EXPECT_EQ(record.substr(12, event.size()), event);
  const auto events = ReadEvents(record);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].step, 300);
  EXPECT_TRUE(events[0].summary);
  EXPECT_EQ(events[0].record, record);
}

TEST(TensorBoard, ReadingStopsAtDamage) {
  std::string file;
  for (int64_t step = 1; step <= 3; ++step) file += EventRecord(SummaryEvent(1, step, ScalarsOf(Step(step))));
  EXPECT_EQ(ReadEvents(file).size(), 3u);
  const size_t third = ReadEvents(file)[0].record.size() + ReadEvents(file)[1].record.size();
  for (size_t at = 0; at < file.size(); ++at) {
    EXPECT_EQ(ReadEvents(file.substr(0, at)).size(), at < ReadEvents(file)[0].record.size() ? 0u
                                                     : at < third                           ? 1u
                                                                                            : 2u);
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_LT(ReadEvents(damaged).size(), 3u) << at;
  }
}

TEST(Csv, ColumnsAndMissingValues) {
  EXPECT_EQ(CsvHeader(),
            "step,loss,grad_norm,lr,tokens,tokens_per_second,seconds,applied,loss_scale,peak_bytes,eval_loss,eval_bits_"
            "per_byte,"
            "eval_accuracy,eval_tokens");
  EXPECT_EQ(CsvRow(Step(2)), "2,3.5,1.5,0.001,128,256,0.5,1,,3000,3,4.25,0.125,77");
  StepMetrics bare;
  bare.step = 3;
  bare.loss = std::nan("");
  bare.grad_norm = INFINITY;
  bare.applied = false;
  EXPECT_EQ(CsvRow(bare), "3,nan,inf,0,0,0,0,0,,,,,,");
  bare.loss_scale = 1024;
  bare.eval = EvalMetrics{.loss = 1, .bits_per_byte = {}, .accuracy = 0.5, .tokens = 2};
  EXPECT_EQ(CsvRow(bare), "3,nan,inf,0,0,0,0,0,1024,,1,,0.5,2");
  for (const std::string& row : {CsvHeader(), CsvRow(bare), CsvRow(Step(1)), CsvRow(Step(2))})
    EXPECT_EQ(std::count(row.begin(), row.end(), ','), 13);
}

TEST(Metrics, EvaluationsAreReadBack) {
  checkpoint::TemporaryDirectory folder;
  MetricsWriter writer(folder / "m.jsonl", 1);
  StepMetrics without_bytes = Step(4);
  without_bytes.eval->bits_per_byte.reset();
  for (const StepMetrics& m : {Step(1), Step(2), without_bytes}) writer.Write(m);
  const auto read = ReadMetrics(folder / "m.jsonl");
  ASSERT_EQ(read.size(), 3u);
  EXPECT_FALSE(read[0].eval);
  EXPECT_EQ(read[1].eval->loss, 3);
  EXPECT_EQ(read[1].eval->bits_per_byte, 4.25);
  EXPECT_EQ(read[1].eval->accuracy, 0.125);
  EXPECT_EQ(read[1].eval->tokens, 77);
  EXPECT_FALSE(read[2].eval->bits_per_byte);
}

std::vector<std::string> Names(const std::string& folder) { return FileSystem::Real().List(folder); }

std::vector<int64_t> EventSteps(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const std::string& name : Names(folder))
    for (const EventPart& event : ReadEvents(ReadFile(folder + "/" + name)))
      if (event.summary) steps.push_back(event.step);
  return steps;
}

const std::vector<int64_t> kOneToFive = {1, 2, 3, 4, 5};

TEST(MetricsLog, AResumedRunReplacesTheStepsItRunsAgain) {
  checkpoint::TemporaryDirectory folder;
  const std::string events = folder / std::string(kTensorBoardFolder), csv = folder / std::string(kCsvFile);
  const MetricsForms both{.csv = true, .tensorboard = true};
  {
    MetricsLog log(folder.path(), 1, both);
    for (int64_t step = 1; step <= 4; ++step) log.Write(Step(step, 100));
  }
  {
    // Killed in the middle of a row and of an event.
    auto cut = ReadFile(csv);
    WriteFileAtomically(csv, cut.substr(0, cut.size() - 5), true);
    const std::string file = events + "/" + Names(events).at(0);
    cut = ReadFile(file);
    WriteFileAtomically(file, cut.substr(0, cut.size() - 5), true);
  }
  {
    MetricsLog log(folder.path(), 3, both);  // from a checkpoint after step 2
    for (int64_t step = 3; step <= 5; ++step) log.Write(Step(step));
  }
  EXPECT_EQ(ReadFile(csv), CsvHeader() + "\n" + CsvRow(Step(1, 100)) + "\n" + CsvRow(Step(2, 100)) + "\n" +
                               CsvRow(Step(3)) + "\n" + CsvRow(Step(4)) + "\n" + CsvRow(Step(5)) + "\n");
  EXPECT_EQ(EventSteps(events), kOneToFive);
  EXPECT_EQ(Names(events).size(), 1u);
  // Again in the same second, and beside a file of somebody else.
  WriteFileAtomically(events + "/events.out.tfevents.12.elsewhere", "not ours");
  { MetricsLog log(folder.path(), 6, both); }
  EXPECT_EQ(EventSteps(events), kOneToFive);
  EXPECT_EQ(Names(events).size(), 2u);
  EXPECT_EQ(ReadFile(events + "/events.out.tfevents.12.elsewhere"), "not ours");
  EXPECT_EQ(ReadMetrics(folder / std::string(kMetricsFile)).size(), 5u);
}

TEST(MetricsLog, AFormThatIsAskedForLateHasTheStepsBefore) {
  checkpoint::TemporaryDirectory folder;
  {
    MetricsLog log(folder.path(), 1, {});
    for (int64_t step = 1; step <= 4; ++step) log.Write(Step(step));
  }
  EXPECT_FALSE(FileSystem::Real().Exists(folder / std::string(kCsvFile)));
  EXPECT_FALSE(FileSystem::Real().Exists(folder / std::string(kTensorBoardFolder)));
  {
    MetricsLog log(folder.path(), 5, {.csv = true, .tensorboard = true});
    log.Write(Step(5));
  }
  EXPECT_EQ(EventSteps(folder / std::string(kTensorBoardFolder)), kOneToFive);
  const std::string table = ReadFile(folder / std::string(kCsvFile));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 6);
}

// Read by the program the files are for.
TEST(MetricsLog, TensorBoardReadsTheEvents) {
  PENSTOCK_NEEDS_REFERENCE();
  checkpoint::TemporaryDirectory folder;
  for (const int64_t first : {1, 3}) {
    MetricsLog log(folder.path(), first, {.csv = false, .tensorboard = true});
    for (int64_t step = first; step <= 5; ++step) log.Write(Step(step, first == 1 ? 100 : 0));
  }
  const std::string out = RunReference(R"(
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
)",
                                       "'" + (folder / std::string(kTensorBoardFolder)) + "'");
  const auto read = nlohmann::json::parse(out);
  EXPECT_EQ(read.size(), 10u) << out;
  EXPECT_EQ(read.at("train/loss"), nlohmann::json::parse("[[1,103.75],[2,103.5],[3,3.25],[4,3.0],[5,2.75]]"));
  EXPECT_EQ(read.at("memory/peak_bytes").size(), 5u);
  EXPECT_EQ(read.at("eval/bits_per_byte"), nlohmann::json::parse("[[2,4.25],[4,4.25]]"));
  EXPECT_NEAR(read.at("eval/perplexity")[0][1].get<double>(), std::exp(3.0), 1e-5);
}

}  // namespace
}  // namespace penstock::report
