// src/report/progress.h
//
// What a run says while it goes: step, loss, tokens per second, time left. On a terminal one line that is rewritten
// at most five times a second; elsewhere (a file, a pipe) a line of its own for the first and last step and for every
// twentieth part of the run, at least every 30 seconds.
// Used by one thread. `out` must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "report/metrics.h"

namespace penstock::report {

class Progress {
 public:
  using Clock = std::function<double()>;  // seconds, from any origin; default: the steady clock
  // The run does steps first_step .. last_step. Prints nothing yet.
  Progress(std::ostream& out, bool terminal, int64_t first_step, int64_t last_step, Clock clock = {});
  // After each step. One whose update was skipped, or that was evaluated, is always shown.
  void Update(const StepMetrics& metrics);
  // Ends the line on a terminal. Idempotent; call it before printing something else.
  void Finish();

 private:
  std::string Line(const StepMetrics& metrics) const;

  std::ostream& out_;
  const bool terminal_;
  const int64_t first_step_, last_step_;
  Clock clock_;
  double last_shown_ = 0;
  int64_t next_shown_step_;
  double seconds_per_step_ = 0;  // smoothed; without the first step, which warms up
  int64_t seen_ = 0;
  size_t width_ = 0;  // of the line on the terminal
};

// True when the file descriptor (1: standard output) is a terminal.
bool IsTerminal(int descriptor);

}  // namespace penstock::report
