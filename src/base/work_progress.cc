#include "base/work_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <thread>

#include "base/background_task.h"
#include "base/units.h"

namespace penstock {

WorkProgress::WorkProgress(std::string name, int64_t total, Unit unit, ProgressSink sink, int64_t already)
    : name_(std::move(name)),
      total_(total),
      done_(already),
      already_(already),
      unit_(unit),
      sink_(std::move(sink)),
      start_(Now()),
      shown_(start_ - 0.5) {}

WorkProgress::~WorkProgress() {
  if (width_ > 0) *sink_.out << "\n" << std::flush;
}

double WorkProgress::Now() const {
  if (sink_.clock) return sink_.clock();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string WorkProgress::Line() const {
  const auto amount = [this](double n) {
    return unit_ == Unit::bytes ? FormatBytes(static_cast<int64_t>(n)) : FormatCount(n);
  };
  std::string line = fmt::format("{}: {:.0f} %, {} of {}", name_,
                                 total_ > 0 ? 100.0 * static_cast<double>(done_) / static_cast<double>(total_) : 100.0,
                                 amount(static_cast<double>(done_)), amount(static_cast<double>(total_)));
  const double seconds = Now() - start_;
  const auto here = static_cast<double>(done_ - already_);
  if (seconds > 0 && here > 0) {
    const double rate = here / seconds;
    line += fmt::format(", {}/s, {} left", amount(rate),
                        FormatSeconds(static_cast<double>(std::max<int64_t>(total_ - done_, 0)) / rate));
  } else {
    line += fmt::format(", after {}", FormatSeconds(seconds));
  }
  return line;
}

void WorkProgress::Update(int64_t done) {
  done_ = done;
  if (sink_.out == nullptr) return;
  const double now = Now();
  if (now - shown_ < (sink_.terminal && width_ > 0 ? 0.2 : 1.0)) return;
  shown_ = now;
  const std::string line = Line();
  if (sink_.terminal) {
    *sink_.out << "\r" << line << std::string(width_ - std::min(width_, line.size()), ' ') << std::flush;
    width_ = line.size();
  } else {
    *sink_.out << line << "\n" << std::flush;
  }
}

void WorkProgress::TickWhile(const std::function<void()>& work) {
  UpdateWhile(work, [this] { return done_; });
}

void WorkProgress::UpdateWhile(const std::function<void()>& work, const std::function<int64_t()>& done) {
  BackgroundTask task(work);
  for (int waited = 0; !task.Done(); ++waited) {
    std::this_thread::sleep_for(std::chrono::milliseconds(waited < 20 ? 1 : 50));
    Update(done());
  }
  task.Wait();
}

}  // namespace penstock
