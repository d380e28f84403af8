// Schedules from files: they run, with the bits of the plain loop, and `train` refuses whatever `check` refuses.
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "issues/tiny.h"
#include "schedule/text.h"
#include "session/check_command.h"

namespace penstock {
namespace {

class WrittenSchedule : public testing::Test {
 protected:
  std::string Write(const std::string& text) {
    const std::string path = fmt::format("{}/written_{}.txt", testing::TempDir(), ++files_);
    WriteFileAtomically(path, text, /*overwrite=*/true);
    return path;
  }
  static std::vector<std::string> With(const std::string& file, const std::vector<std::string>& more = {}) {
    return tiny::With({"parallel.pipeline=2", "train.micro_batch=2", "parallel.schedule='" + file + "'"}, more);
  }

 private:
  int files_ = 0;
};

// 8 samples in 4 micro-batches over 2 ranks.
const char* const kCompute[] = {
    // 1F1B, the example of docs/schedule_format.md
    "rank 0: F0 F1 B0 F2 B1 F3 B2 B3\nrank 1: F0 B0 F1 B1 F2 B2 F3 B3\n",
    // backward in halves, weights at the end
    "rank 0: F0 F1 F2 F3 I0 I1 I2 I3 W0 W1 W2 W3\nrank 1: F0 I0 F1 I1 F2 I2 F3 I3 W3 W2 W1 W0\n",
    // stage 0 keeps its inputs only; the pass places the recomputation
    "recompute 0\nrank 0: F0 F1 B0 F2 B1 F3 B2 B3\nrank 1: F0 B0 F1 B1 F2 B2 F3 B3\n",
    // recomputed early, where the file says
    "rank 0: F0 F1 R0 B0 F2 R1 B1 R2 F3 B2 R3 B3\nrank 1: F0 B0 F1 B1 F2 B2 F3 B3\n",
    // micro-batches in another order
    "rank 0: F3 F1 F0 F2 B3 B1 B0 B2\nrank 1: F3 F1 F0 F2 B3 B1 B0 B2\n"};

TEST_F(WrittenSchedule, ComputeOnlyHasThePlainLoopsBits) {
  const auto samples = tiny::EqualSamples();
  for (const char* tied : {"model.tied=true", "model.tied=false"}) {
    const session::RecordedRun reference = tiny::Reference({tied}, samples);
    for (const char* text : kCompute) {
      SCOPED_TRACE(text);
      const std::string file = Write(std::string("penstock schedule 1\n") + text);
      tiny::ExpectEqualBits(reference, tiny::RunLayout(With(file, {tied}), samples));
    }
  }
}

TEST_F(WrittenSchedule, OneCopyPerReplica) {
  const auto samples = tiny::EqualSamples();
  const std::string file = Write(std::string("penstock schedule 1\n") + kCompute[3]);
  const std::vector<std::string> eight = {"train.micro_batch=1"};
  tiny::ExpectEqualBits(tiny::Reference(eight, samples),
                        tiny::RunLayout(tiny::With(With(file, {"parallel.data=2"}), eight), samples));
}

// A whole step as PrintSchedule writes it, messages and updates included.
TEST_F(WrittenSchedule, WholeStepsAreTakenAsTheyAre) {
  const auto samples = tiny::EqualSamples();
  for (const std::vector<std::string>& layout :
       std::vector<std::vector<std::string>>{{"parallel.schedule='zb-h1'"},
                                             {"parallel.schedule='1f1b'", "parallel.data=2", "model.tied=true"},
                                             {"parallel.schedule='1f1b'", "parallel.recompute='full'"}}) {
    const auto all = tiny::With({"parallel.pipeline=2"}, layout);
    const auto built = tiny::Settings(all);
    const std::string file = Write(schedule::PrintSchedule(session::MakePlan(*built, true).schedule));
    std::vector<std::string> written = {"parallel.pipeline=2", "parallel.schedule='" + file + "'"};
    for (const std::string& assignment : layout)
      if (assignment.find("parallel.schedule") == std::string::npos &&
          assignment.find("recompute") == std::string::npos)
        written.push_back(assignment);
    tiny::ExpectEqualBits(tiny::RunLayout(all, samples), tiny::RunLayout(written, samples));
  }
}

int Check(const std::string& file, std::string& text) {
  std::ostringstream out;
  int code = 2;
  try {
    code = session::RunCheck({.target = file, .assignments = {}, .json = false}, out);
  } catch (const UserError& error) {
    out << error.what();
  }
  text = out.str();
  return code;
}

TEST_F(WrittenSchedule, TrainRefusesWhatCheckRefuses) {
  const auto built = tiny::Settings({"parallel.pipeline=2", "parallel.schedule='1f1b'"});
  const std::string whole = schedule::PrintSchedule(session::MakePlan(*built, true).schedule);
  const auto changed = [&whole](const std::string& from, const std::string& to) {
    const size_t at = whole.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return whole.substr(0, at) + to + whole.substr(at + from.size());
  };
  const std::string head = "penstock schedule 1\n", second = "rank 1: F0 B0 F1 B1 F2 B2 F3 B3\n";
  const std::vector<std::string> faulty = {
      head + "rank 0: F0 F1 I0 F2 I1 F3 I2 I3 W0 W1 W2\n" + second,           // a weight half is missing
      head + "rank 0: B0 F0 F1 F2 B1 F3 B2 B3\n" + second,                    // backward first
      head + "rank 0: F0 F1 B0 F2 B1 F3 B2\n" + second,                       // no backward
      head + "rank 0: F0 F0 F1 B0 F2 B1 F3 B2 B3\n" + second,                 // twice
      head + "rank 0: F0 R0 R0 F1 B0 F2 B1 F3 B2 B3\n" + second,              // recomputed twice
      head + "rank 0: F0 F1 B0 F2 B1 F3 B2 B3\nrank 1: B0 F0 F1 B1 F2 B2\n",  // two faults
      head + "stage-options none\nrank 0: F0 F1 B0 F2 B1 F3 B2 B3\n" + second,
      changed("  update", "# update"),
      changed("  send:activation 0.0", "# send:activation 0.0"),
      changed("  check:", "# check:"),
      changed("->1", "->0"),
  };
  for (const std::string& text : faulty) {
    SCOPED_TRACE(text);
    const std::string file = Write(text);
    std::string said;
    EXPECT_EQ(Check(file, said), 2) << said;
    const auto settings = tiny::Settings(With(file));
    EXPECT_THROW(session::Prepare(*settings, tiny::EqualSamples()), UserError);
  }
}

// What only a job can refuse: `check` of the file alone is content.
TEST_F(WrittenSchedule, WhatTheRunCannotFollowIsRefused) {
  const std::string head = "penstock schedule 1\n", both = kCompute[0];
  const std::string order_0 = "rank 0: F0 F1 B0 F2 B1 F3 B2 B3\n";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {head + order_0 + "rank 1: F0 B0 F1 B1 F2 B2\n  forward 1.3 +1\n  backward 1.3\n", "says more than"},
      {head + "edge none\n" + both, "no chain"},
      {head + "shared 0 1\nshared 0 1\n" + both, "shared parameters"},
      {head + "contract staleness=1\n" + both, "staleness 1"},
      {head + "rank 0: F0 F1 B0 B1\nrank 1: F0 B0 F1 B1\n", "micro-batches"},
      {head + "recompute 0\n" + both, "parallel.recompute"},
  };
  for (const auto& [text, reason] : refused) {
    SCOPED_TRACE(text);
    const std::string file = Write(text);
    const auto more = reason == "parallel.recompute" ? std::vector<std::string>{"parallel.recompute='full'"}
                                                     : std::vector<std::string>{};
    const auto settings = tiny::Settings(With(file, more));
    try {
      session::Prepare(*settings, tiny::EqualSamples());
      ADD_FAILURE() << "was not refused";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
}

// `check` of a configuration says no where `train` would not start.
TEST_F(WrittenSchedule, CheckRefusesWhatDoesNotFit) {
  const std::string config = Write("");
  const std::string path = config + ".toml";
  WriteFileAtomically(path, "[train]\nsteps = 1\n[model]\nlayers = 2\nhidden = 256\n", /*overwrite=*/true);
  std::ostringstream out;
  EXPECT_EQ(session::RunCheck({.target = path, .assignments = {}, .json = false}, out), 0) << out.str();
  EXPECT_EQ(session::RunCheck({.target = path, .assignments = {"runtime.memory_limit='1 MiB'"}, .json = false}, out),
            2);
  EXPECT_NE(out.str().find("refused: "), std::string::npos) << out.str();
}

}  // namespace
}  // namespace penstock
