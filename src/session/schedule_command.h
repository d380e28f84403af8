// src/session/schedule_command.h
//
// `penstock schedule`: builds one schedule, or reads it from a file, verifies it, and says how long it takes and what
// it keeps alive at uniform costs. Exact rationals inside.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "base/rational.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"
#include "simulate/list_engine.h"

namespace penstock::session {

struct ScheduleOptions {
  std::string name;                  // of a builder, or the path of a file
  std::optional<int> ranks;          // P; a builder needs it, a file has its own
  std::optional<int> chunks;         // V; default of the builder
  std::optional<int> micro_batches;  // M; a builder needs it, a file has its own
  std::string route;                 // placement; default of the builder
  std::string costs = "1,1,1";       // forward, backward_input, backward_weight
  std::string per = "rank";          // "rank": costs of a rank's share, all its chunks; "chunk": of one stage
  std::string hop = "0";             // latency of a message
  bool print = false;
  std::string save;  // path of the text form; empty: none
  std::string draw;  // path of an SVG; empty: none
  bool json = false;
};

struct ScheduleAnswer {
  schedule::Schedule schedule;
  int chunks = 1;
  std::string route;
  // Of the whole step: the schedule with what the passes derive from its order of compute, unless it has that already.
  schedule::VerifyReport verified;
  simulate::Replay<Rational> replay;
};

// UserError when an option, the file or the schedule is at fault; a schedule that does not verify is.
ScheduleAnswer AnswerSchedule(const ScheduleOptions& options);

// Writes the answer as text or JSON, and the files asked for. Exit code.
int RunSchedule(const ScheduleOptions& options, std::ostream& out);

}  // namespace penstock::session
