// Through cli::Main, as a shell would: exit codes, stdout, stderr.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/command.h"

namespace penstock::cli {
namespace {

struct Outcome {
  int code = 0;
  std::string out, err;
};

Outcome Penstock(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "penstock");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = Main(static_cast<int>(arguments.size()), arguments.data(), "9.8.7");
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

// One line on stderr, exit code 2, nothing on stdout.
void ExpectUserError(const std::vector<const char*>& arguments, const std::string& message) {
  const Outcome outcome = Penstock(arguments);
  EXPECT_EQ(outcome.code, 2) << message;
  EXPECT_EQ(outcome.err, "penstock: error: " + message + "\n");
  EXPECT_EQ(outcome.out, "");
}

TEST(Cli, VersionAndHelp) {
  EXPECT_EQ(Penstock({"--version"}).out, "penstock 9.8.7\n");
  const Outcome help = Penstock({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const auto& [name, command] : Registry<Command>::All()) {
    EXPECT_NE(help.out.find(name), std::string::npos);
    EXPECT_NE(help.out.find(command.summary), std::string::npos);
  }
}

TEST(Cli, EverySubCommandHasHelpAndJson) {
  for (const auto& [name, command] : Registry<Command>::All()) {
    const Outcome help = Penstock({name.c_str(), "--help"});
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_NE(help.out.find("--json"), std::string::npos) << name;
  }
}

TEST(Cli, UsageErrorsAreOneLine) {
  EXPECT_EQ(Penstock({}).code, 2);
  ExpectUserError({"schedule", "1f1b", "--microbatch", "4"},
                  "schedule: there is no option --microbatch; did you mean '--microbatches'?");
  EXPECT_EQ(Penstock({"shedule"}).code, 2);
  EXPECT_NE(Penstock({"shedule"}).err.find("there is no sub-command 'shedule'; did you mean 'schedule'?"),
            std::string::npos);
  EXPECT_EQ(Penstock({"schedule", "1f1b", "--ranks", "four"}).code, 2);
  EXPECT_EQ(Penstock({"schedule", "1f1b", "--ranks", "4", "--microbatches", "8", "--per", "stage"}).code, 2);
}

TEST(Cli, NumbersAreWholeDecimalAndInRange) {
  for (const auto& [text, reason] :
       std::vector<std::pair<const char*, std::string>>{{"4x", "'4x' is not a whole number"},
                                                        {"4.0", "'4.0' is not a whole number"},
                                                        {"0x4", "'0x4' is not a whole number"},
                                                        {"", "'' is not a whole number"},
                                                        {"99999999999", "'99999999999' does not fit"}}) {
    const Outcome outcome = Penstock({"schedule", "1f1b", "--ranks", text, "--microbatches", "8"});
    EXPECT_EQ(outcome.code, 2) << text;
    EXPECT_NE(outcome.err.find("--ranks: " + reason), std::string::npos) << outcome.err;
  }
  // Ten, not eight.
  const Outcome ten = Penstock({"schedule", "1f1b", "--ranks", "010", "--microbatches", "8", "--json"});
  ASSERT_EQ(ten.code, 0) << ten.err;
  EXPECT_EQ(nlohmann::json::parse(ten.out).at("ranks"), 10);
}

// A path that follows an assignment would be taken for one more: it is named, unless a required argument needs it.
TEST(Cli, APathAfterSetIsNamed) {
  for (const std::vector<const char*>& arguments : std::vector<std::vector<const char*>>{
           {"config", "--set", "train.steps=3", "t2.toml"}, {"config", "--set", "t2.toml"}}) {
    const Outcome outcome = Penstock(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("'t2.toml' after --set is no section.key=value"), std::string::npos) << outcome.err;
  }
}

TEST(Cli, ScheduleJson) {
  const Outcome outcome =
      Penstock({"schedule", "interleaved-1f1b", "--ranks", "4", "--chunks", "3", "--microbatches", "8", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto j = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(j.at("makespan"), 27);
  EXPECT_EQ(j.at("max_span"), 27);
  EXPECT_EQ(j.at("bubble_fraction").get<double>(), 1.0 / 9);
  EXPECT_EQ(j.at("actions"), 2 * 12 * 8);
  EXPECT_EQ(j.at("verified"), true);
  EXPECT_EQ(j.at("transports").at("blocking"), true);
  EXPECT_EQ(j.at("exact").at("bubble_fraction"), "1/9");
  EXPECT_EQ(j.at("exact").at("peak_microbatches"), nlohmann::json({"5", "13/3", "11/3", "3"}));
}

TEST(Cli, ScheduleErrorsSayWhatWouldWork) {
  ExpectUserError({"schedule", "1f2b", "--ranks", "4", "--microbatches", "8"},
                  "there is no schedule named '1f2b'; did you mean '1f1b'?");
  ExpectUserError({"schedule", "1f1b", "--microbatches", "8"}, "schedule '1f1b' needs --ranks, for example --ranks 4");
  ExpectUserError({"schedule", "1f1b", "--ranks", "4"},
                  "schedule '1f1b' needs --microbatches, for example --microbatches 8");
  ExpectUserError({"schedule", "zb-v", "--ranks", "4", "--microbatches", "8", "--route", "lop"},
                  "--route: there is no placement named 'lop'; did you mean 'loop'?");
  ExpectUserError({"schedule", "zb-v", "--ranks", "4", "--microbatches", "8", "--route", "loop"},
                  "schedule 'zb-v' does not run on a 'loop' route; it takes v");
  ExpectUserError({"schedule", "zb-v", "--ranks", "4", "--microbatches", "8", "--chunks", "3"},
                  "schedule 'zb-v': a V has 2 chunks per rank, not 3");
  ExpectUserError({"schedule", "1f1b", "--ranks", "4", "--microbatches", "0"},
                  "--microbatches must be at least 1, not 0");
  ExpectUserError({"schedule", "1f1b", "--ranks", "4", "--microbatches", "8", "--costs", "1,1"},
                  "--costs takes three times, of forward, backward_input and backward_weight, as in 1,1,1; not '1,1'");
  ExpectUserError({"schedule", "1f1b", "--ranks", "4", "--microbatches", "8", "--costs", "1,x,1"},
                  "'x' is not a number (try 2, 1/3 or 0.25)");
  ExpectUserError({"schedule", "1f1b", "--ranks", "4", "--microbatches", "8", "--costs", "1,-1,1"},
                  "a time cannot be negative: -1");
  EXPECT_EQ(Penstock({"schedule", "1f1b", "--ranks", "60000", "--microbatches", "2000000000"}).code, 2);
  EXPECT_EQ(
      Penstock({"schedule", "1f1b", "--ranks", "4", "--microbatches", "8", "--costs", "1/99999999999,1/99999999997,1"})
          .code,
      2);
}

TEST(Cli, ScheduleFromFile) {
  const std::string path = testing::TempDir() + "penstock_cli_test.schedule";
  FileSystem::Real().Remove(path);
  ASSERT_EQ(Penstock({"schedule", "zb-h2", "--ranks", "4", "--microbatches", "8", "--save", path.c_str()}).code, 0);
  const Outcome read = Penstock({"schedule", path.c_str(), "--json"});
  ASSERT_EQ(read.code, 0) << read.err;
  const auto j = nlohmann::json::parse(read.out);
  EXPECT_EQ(j.at("schedule"), "zb-h2");
  EXPECT_EQ(j.at("makespan"), 27);
  EXPECT_EQ(j.at("max_span"), 24);
  EXPECT_EQ(j.at("chunks"), 1);

  const Outcome again = Penstock({"schedule", "1f1b", "--ranks", "2", "--microbatches", "2", "--save", path.c_str()});
  EXPECT_EQ(again.code, 2) << "nothing is overwritten";
  EXPECT_EQ(Penstock({"schedule", path.c_str(), "--ranks", "4"}).code, 2) << "an option without effect";
  EXPECT_EQ(Penstock({"schedule", "/nonexistent/file"}).code, 2);

  WriteFileAtomically(path, "penstock schedule 1\nrank 0: B0 F0\n", /*overwrite=*/true);
  const Outcome stuck = Penstock({"schedule", path.c_str()});
  EXPECT_EQ(stuck.code, 2);
  EXPECT_NE(stuck.err.find("is faulty"), std::string::npos) << stuck.err;
  EXPECT_NE(stuck.err.find("'backward 0.0'"), std::string::npos) << stuck.err;
  FileSystem::Real().Remove(path);
}

TEST(Cli, ScheduleDrawing) {
  const std::string path = testing::TempDir() + "penstock_cli_test.svg";
  FileSystem::Real().Remove(path);
  ASSERT_EQ(Penstock({"schedule", "zb-v", "--ranks", "2", "--microbatches", "4", "--svg", path.c_str()}).code, 0);
  EXPECT_NE(ReadFile(path).find("<svg"), std::string::npos);
  FileSystem::Real().Remove(path);
}

TEST(Cli, ListNamesEverything) {
  const Outcome outcome = Penstock({"list", "--json"});
  ASSERT_EQ(outcome.code, 0);
  const auto j = nlohmann::json::parse(outcome.out);
  for (const char* section : {"schedules", "operators", "passes", "placements"})
    EXPECT_FALSE(j.at(section).empty()) << section;
  EXPECT_EQ(j.at("schedules").at(0).at("name"), "1f1b");
  EXPECT_EQ(Penstock({"list", "shedules"}).code, 2);
  EXPECT_NE(Penstock({"list"}).out.find("zb-v"), std::string::npos);
}

}  // namespace
}  // namespace penstock::cli
