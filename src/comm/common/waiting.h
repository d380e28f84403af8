// src/comm/common/waiting.h
//
// How a rank sleeps until an operation is over, and when it stops hoping: the world failed, the peer it needs has
// ended, the deadline passed while nobody does host work. The same rules for every back end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>

#include "comm/communicator.h"

namespace penstock::comm {

// Something a rank can sleep on. Atomics only: called with the sleeper's mutex held (Describe is not).
class Condition {
 public:
  virtual ~Condition() = default;
  virtual bool Ready() const = 0;
  // A rank that still has to do something for this to happen, or -1: if it has ended, that never comes.
  virtual int MissingRank() const = 0;
  // Whom it waits for, for the message at the deadline; -1: unknown.
  virtual int AwaitedRank() const { return MissingRank(); }
  // "recv 'activation s2 m3'".
  virtual std::string Describe() const = 0;
};

// What a waiting rank asks about its world.
class WaitRules {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~WaitRules() = default;
  virtual bool failed() const = 0;
  // Throws what `rank` is to see of the failure, with what it was doing. Only when failed().
  [[noreturn]] virtual void ThrowFailure(int rank, const std::string& doing) const = 0;
  // Ends the world; only the first call counts. `what`: an exception of `rank` (-1: of nobody).
  virtual void Fail(int rank, std::exception_ptr what) = 0;
  virtual bool finished(int rank) const = 0;
  virtual RankStatus StatusOf(int rank) const = 0;
  // When some rank was last in host work: now while one is.
  virtual Clock::time_point LastHostWork() const = 0;

  // Fails the world with `error` as seen by `rank`, and throws it.
  template <typename E>
  [[noreturn]] void FailWith(int rank, const E& error) {
    Fail(rank, std::make_exception_ptr(error));
    throw error;
  }
  // "rank 1, which is at 'forward s3 m2' since 4.2 s".
  std::string DescribeRank(int rank) const;
};

// Where one rank sleeps.
struct Sleeper {
  std::mutex mutex;
  std::condition_variable wake;

  void Notify() {
    { std::lock_guard lock(mutex); }  // a sleeper has either seen the change or is asleep by now
    wake.notify_all();
  }
};

// Returns when the condition is ready. Throws when the world has failed or fails, when MissingRank() has finished, and
// `limit` after `since`. Looks `spins` times before it sleeps.
void WaitFor(WaitRules& rules, Sleeper& sleeper, int rank, const Condition& condition,
             WaitRules::Clock::time_point since, WaitRules::Clock::duration limit, int spins);

}  // namespace penstock::comm
