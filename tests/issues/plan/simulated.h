// tests/issues/plan/simulated.h
//
// The cases that `penstock simulate` answers: a small job, its output, and what it says when it refuses.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "session/simulate_command.h"

namespace penstock::simulated {

// 8 blocks on 2 A100, 16 micro-batches, 1F1B.
inline constexpr const char* kJob = R"(
[model]
layers = 8
hidden = 64
heads = 4
[train]
batch = 16
micro_batch = 1
[parallel]
pipeline = 2
[cluster]
name = "a100-80"
)";

inline std::string Write(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/simulated_" + name;
  WriteFileAtomically(path, text, /*overwrite=*/true);
  return path;
}

inline std::string Text(const std::vector<std::string>& assignments, bool json = false, const std::string& out = "") {
  std::ostringstream text;
  EXPECT_EQ(session::RunSimulate(
                {.config = Write("job.toml", kJob), .assignments = assignments, .out = out, .json = json}, text),
            0);
  return text.str();
}

inline nlohmann::json Json(const std::vector<std::string>& assignments) {
  return nlohmann::json::parse(Text(assignments, /*json=*/true));
}

// The message of the UserError (exit code 2); fails when there is a result.
inline std::string Refusal(const std::vector<std::string>& assignments) {
  std::ostringstream text;
  try {
    session::RunSimulate({.config = Write("job.toml", kJob), .assignments = assignments, .out = "", .json = false},
                         text);
  } catch (const UserError& error) {
    EXPECT_EQ(text.str(), "") << "a result before the refusal";
    return error.what();
  }
  ADD_FAILURE() << "not refused:\n" << text.str();
  return "";
}

inline std::string ScheduleFile(const std::string& name, const std::string& lines) {
  return "parallel.schedule='" + Write(name + ".sched", "penstock schedule 1\n" + lines) + "'";
}

}  // namespace penstock::simulated
