// src/comm/threads/world.h
//
// What the ranks of one RunThreadRanks share: the failure that ended the world, the way ranks sleep and are woken,
// the channels and the groups.
//
// Locks: channel and group mutexes are leaves except that Notify (the sleeper's mutex) is called after they are
// released; a sleeper's predicate reads atomics only. So no two locks are ever held together.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/thread_ranks.h"
#include "comm/threads/status_slot.h"

namespace penstock::comm {

class Channel;
class GroupQueue;

// How a rank names tags; shared, because posted operations keep it for their messages.
using NamerPtr = std::shared_ptr<const TagNamer>;

// Something a rank can sleep on.
class Condition {
 public:
  virtual ~Condition() = default;
  // Atomics only: called with the sleeper's mutex held.
  virtual bool Ready() const = 0;
  // A rank whose contribution is missing, or -1.
  virtual int MissingRank() const = 0;
  // "recv 'activation s2 m3'".
  virtual std::string Describe() const = 0;
};

class World {
 public:
  World(int size, const ThreadWorldOptions& options);
  ~World();

  int size() const { return static_cast<int>(ranks_.size()); }
  const ThreadWorldOptions& options() const { return options_; }

  // ---- failure ----
  // Ends the world; only the first call counts. `what`: an exception of `rank` (-1: of nobody).
  void Fail(int rank, std::exception_ptr what);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Throws what `rank` is to see of the failure, with what it was doing. Only when failed().
  [[noreturn]] void ThrowFailure(int rank, const std::string& doing) const;
  // The failure as the launcher throws it. Nothing when the world did not fail.
  void RethrowFirst() const;
  // Fails the world with `error` as seen by `rank`, and throws it.
  template <typename E>
  [[noreturn]] void FailWith(int rank, const E& error) {
    Fail(rank, std::make_exception_ptr(error));
    throw error;
  }

  // ---- sleeping ----
  // Returns when the condition is ready. Throws when the world has failed or fails, when MissingRank() has finished,
  // and at the deadline (counted from `since`).
  void Wait(int rank, const Condition& condition, std::chrono::steady_clock::time_point since);
  void Notify(int rank);
  void NotifyAll();

  // ---- ranks ----
  StatusSlot& status(int rank) { return ranks_[rank]->status; }
  const StatusSlot& status(int rank) const { return ranks_[rank]->status; }
  void SetHostWork(int rank, bool now);
  // "rank 1, which is at 'forward s3 m2' since 4.2 s".
  std::string DescribeRank(int rank) const;
  void Finish(int rank);
  // Blocks until all ranks have finished; calls for help when one does not come back after a failure.
  void WaitForRanks();

  Channel& channel(int from, int to) { return *channels_[from * size() + to]; }
  // The queue of the group with this name and these ranks; made at the first call.
  GroupQueue* group(const std::vector<int>& ranks, const std::string& name);
  // OrderMismatch (as a failure) when messages or collectives are left over. After all ranks have finished.
  void CheckNothingLeft();
  // Drops what is queued. After all ranks have finished.
  void Clear();

 private:
  struct Rank {
    std::mutex mutex;
    std::condition_variable wake;
    StatusSlot status;
  };
  std::string StuckReport() const;
  // When some rank was last in host work: now while one is.
  std::chrono::steady_clock::time_point LastHostWork() const;

  const ThreadWorldOptions options_;
  const int spins_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::unique_ptr<Channel>> channels_;

  std::mutex groups_mutex_;
  std::map<std::pair<std::string, std::vector<int>>, std::unique_ptr<GroupQueue>> groups_;

  mutable std::mutex failure_mutex_;
  std::atomic<bool> failed_{false};
  std::exception_ptr first_;
  int first_rank_ = -1;
  std::string first_text_;

  std::atomic<std::chrono::steady_clock::rep> host_work_ended_{0};  // ticks of the clock; 0: there was none

  std::mutex finished_mutex_;
  std::condition_variable finished_wake_;
  int num_finished_ = 0;
};

}  // namespace penstock::comm
