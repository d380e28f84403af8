// src/base/time_source.h
//
// The clock as a seam: what emulation asks for the time and sleeps by. Real, or virtual for exact tests.
#pragma once

#include <algorithm>
#include <chrono>

namespace penstock {

class TimeSource {
 public:
  using Time = std::chrono::steady_clock::time_point;
  virtual ~TimeSource() = default;
  virtual Time Now() = 0;
  // Returns at `time` or later, never earlier.
  virtual void SleepUntil(Time time) = 0;
};

// The steady clock of the machine: threads and processes of one machine agree on it. A sleep gives the core away and
// asks the kernel for its finest timer (the thread keeps that setting). Any thread.
TimeSource& SteadyTime();

// Begins at the clock's epoch and goes where it is sent, at once. One thread each: ranks with clocks of their own that
// carry time in their messages compute the times of a run without living through it.
class VirtualTime final : public TimeSource {
 public:
  Time Now() override { return now_; }
  void SleepUntil(Time time) override { now_ = std::max(now_, time); }

 private:
  Time now_{};
};

}  // namespace penstock
