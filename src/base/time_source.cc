#include "base/time_source.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <thread>

namespace penstock {
namespace {

class Steady final : public TimeSource {
 public:
  Time Now() override { return std::chrono::steady_clock::now(); }
  void SleepUntil(Time time) override {
#ifdef __linux__
    // The kernel may join timers within 50 us otherwise; that is most of what a sleep is late by.
    static thread_local const int finest = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    static_cast<void>(finest);
#endif
    while (Now() < time) std::this_thread::sleep_until(time);
  }
};

}  // namespace

TimeSource& SteadyTime() {
  static Steady steady;
  return steady;
}

}  // namespace penstock
