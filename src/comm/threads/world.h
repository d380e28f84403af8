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

#include "comm/common/first_failure.h"
#include "comm/common/signature.h"
#include "comm/common/status_slot.h"
#include "comm/common/waiting.h"
#include "comm/communicator.h"
#include "comm/thread_ranks.h"

namespace penstock::comm {

class Channel;
class GroupQueue;

class World final : public WaitRules {
 public:
  World(int size, const ThreadWorldOptions& options);
  ~World() override;

  int size() const { return static_cast<int>(ranks_.size()); }
  const ThreadWorldOptions& options() const { return options_; }

  // ---- failure ----
  // Ends the world; only the first call counts. `what`: an exception of `rank` (-1: of nobody).
  void Fail(int rank, std::exception_ptr what) override;
  bool failed() const override { return failure_.failed(); }
  // Throws what `rank` is to see of the failure, with what it was doing. Only when failed().
  [[noreturn]] void ThrowFailure(int rank, const std::string& doing) const override { failure_.ThrowFor(rank, doing); }
  // The failure as the launcher throws it. Nothing when the world did not fail.
  void RethrowFirst() const { failure_.Rethrow(); }

  // ---- sleeping ----
  // See WaitFor; the deadline is counted from `since`.
  void Wait(int rank, const Condition& condition, std::chrono::steady_clock::time_point since);
  void Notify(int rank);
  void NotifyAll();

  // ---- ranks ----
  StatusSlot& status(int rank) { return ranks_[rank]->status; }
  const StatusSlot& status(int rank) const { return ranks_[rank]->status; }
  void SetHostWork(int rank, bool now);
  bool finished(int rank) const override { return status(rank).finished(); }
  RankStatus StatusOf(int rank) const override { return status(rank).Get(); }
  std::chrono::steady_clock::time_point LastHostWork() const override;
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
    Sleeper sleeper;
    StatusSlot status;
  };
  std::string StuckReport() const;

  const ThreadWorldOptions options_;
  const int spins_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::unique_ptr<Channel>> channels_;

  std::mutex groups_mutex_;
  std::map<std::pair<std::string, std::vector<int>>, std::unique_ptr<GroupQueue>> groups_;

  FirstFailure failure_;

  std::atomic<std::chrono::steady_clock::rep> host_work_ended_{0};  // ticks of the clock; 0: there was none

  std::mutex finished_mutex_;
  std::condition_variable finished_wake_;
  int num_finished_ = 0;
};

}  // namespace penstock::comm
