#include "comm/common/waiting.h"

#include <fmt/format.h>

#include <thread>

namespace penstock::comm {
namespace {

using Clock = WaitRules::Clock;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

std::string WaitRules::DescribeRank(int rank) const {
  const RankStatus s = StatusOf(rank);
  if (s.finished) return fmt::format("rank {}, which has ended", rank);
  if (s.action.empty()) return fmt::format("rank {}", rank);
  return fmt::format("rank {}, which is at '{}' since {:.1f} s", rank, s.action, s.seconds);
}

void WaitFor(WaitRules& rules, Sleeper& sleeper, int rank, const Condition& condition, Clock::time_point since,
             Clock::duration limit, int spins) {
  const auto check_failure = [&] {
    if (rules.failed()) rules.ThrowFailure(rank, condition.Describe());
  };
  check_failure();
  for (int i = 0; i < spins; ++i) {
    if (condition.Ready()) return;
    Pause();
  }
  auto deadline = since + limit;
  int lost = -1;
  {
    std::unique_lock lock(sleeper.mutex);
    bool late = false;
    for (;;) {
      // In this order: what a peer did before it finished counts.
      const int missing = condition.MissingRank();
      const bool gone = missing >= 0 && missing != rank && rules.finished(missing);
      if (condition.Ready()) return;
      if (rules.failed()) break;
      if (gone && condition.MissingRank() == missing) {
        lost = missing;
        break;
      }
      if (late) break;
      late = sleeper.wake.wait_until(lock, deadline) == std::cv_status::timeout && Clock::now() >= deadline;
      if (!late) continue;
      const auto extended = rules.LastHostWork() + limit;
      if (extended <= Clock::now()) continue;
      late = false;
      deadline = extended;
    }
  }
  check_failure();
  if (lost >= 0) {
    rules.FailWith(rank, PeerLost(lost, fmt::format("rank {} waits for rank {} ({}), but rank {} has ended", rank, lost,
                                                    condition.Describe(), lost)));
  }
  const int awaited = condition.AwaitedRank();
  rules.FailWith(rank,
                 PeerLost(awaited, fmt::format("rank {} waits for {} ({}); no answer within {:.1f} s", rank,
                                               awaited >= 0 ? rules.DescribeRank(awaited) : std::string("another rank"),
                                               condition.Describe(), Seconds(Clock::now() - since))));
}

}  // namespace penstock::comm
