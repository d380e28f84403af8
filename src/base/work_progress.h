// src/base/work_progress.h
//
// What long work says while it goes: how much is done, at which rate, and how long the rest takes. On a terminal one
// line that is rewritten; elsewhere (a file, a pipe) a line of its own every second, the first one after half a second.
// Shorter work says nothing. Whoever works calls Update or Tick twice a second (TickWhile where it cannot), so that no
// two lines are further apart than two seconds, also where one work follows another.
//
//   WorkProgress progress("tokenize", total, WorkProgress::Unit::bytes, {.out = &std::cerr});
//   progress.Update(done);
//
// Used by one thread. `out` must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace penstock {

struct ProgressSink {
  std::ostream* out = nullptr;         // null: silent
  bool terminal = false;               // out is one
  std::function<double()> clock = {};  // seconds, from any origin; default: the steady clock
};

class WorkProgress {
 public:
  enum class Unit { bytes, count };
  // `already`: done before this run (resumed work); it does not count in the rate.
  WorkProgress(std::string name, int64_t total, Unit unit, ProgressSink sink, int64_t already = 0);
  // Ends the line on a terminal.
  ~WorkProgress();
  WorkProgress(const WorkProgress&) = delete;
  WorkProgress& operator=(const WorkProgress&) = delete;

  void Update(int64_t done);
  // Nothing new, but time has passed.
  void Tick() { Update(done_); }
  // Does `work`, which says nothing, on another thread and ticks meanwhile. Its exception passes.
  void TickWhile(const std::function<void()>& work);
  // The same of work that counts: `done` is called on this thread meanwhile.
  void UpdateWhile(const std::function<void()>& work, const std::function<int64_t()>& done);
  // "tokenize: 37 %, 123 MiB of 332 MiB, 8.10 MiB/s, 25.8 s left"
  std::string Line() const;

 private:
  double Now() const;

  std::string name_;
  int64_t total_, done_, already_;
  Unit unit_;
  ProgressSink sink_;
  double start_, shown_;
  size_t width_ = 0;  // of the line on the terminal
};

}  // namespace penstock
