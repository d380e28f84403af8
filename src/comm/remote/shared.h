// src/comm/remote/shared.h
//
// What the rank's thread and the progress thread of one process share: commands in one direction, finished works in the
// other, the failure, and what is known of the peers. All protocol state is elsewhere and belongs to the progress
// thread alone.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "comm/common/first_failure.h"
#include "comm/common/signature.h"
#include "comm/common/status_slot.h"
#include "comm/common/waiting.h"
#include "comm/remote/remote_rank.h"

namespace penstock::comm {

class RemoteRecvWork;
class RemoteCollectiveWork;

struct SendCommand {
  int peer;
  Tag tag;
  std::vector<at::Tensor> tensors;
};
struct RecvCommand {
  std::shared_ptr<RemoteRecvWork> work;
};
struct CollectiveCommand {
  Group group;
  Post post;
  std::shared_ptr<RemoteCollectiveWork> work;
};
struct HostWorkCommand {
  bool now;
};
struct BodyEndedCommand {
  std::string leftover;  // of what the rank sent itself
};
using Command = std::variant<SendCommand, RecvCommand, CollectiveCommand, HostWorkCommand, BodyEndedCommand>;

class Shared final : public WaitRules {
 public:
  Shared(int rank, int size, const RemoteOptions& options, FirstFailure& failure);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }
  const RemoteOptions& options() const { return options_; }

  // ---- the rank's thread ----
  void Give(Command command);
  void Wait(const Condition& condition);
  void SetNamer(NamerPtr namer);
  StatusSlot& status() { return status_; }
  const StatusSlot& status() const { return status_; }

  // ---- the progress thread ----
  // Takes all commands. Waits up to `longest` for one.
  std::vector<Command> TakeCommands(std::chrono::microseconds longest);
  void Notify() { sleeper_.Notify(); }
  FirstFailure& failure() { return failure_; }
  const FirstFailure& failure() const { return failure_; }
  void SetPeerStatus(int peer, std::string action, double seconds);
  void SetPeerFinished(int peer);
  void SetPeerHostWork(int peer, bool now);

  // ---- both, and the caller of RunRemoteRank ----
  NamerPtr namer() const;
  bool failed() const override { return failure_.failed(); }
  [[noreturn]] void ThrowFailure(int rank, const std::string& doing) const override { failure_.ThrowFor(rank, doing); }
  void Fail(int rank, std::exception_ptr what) override;
  bool finished(int rank) const override { return peers_[rank]->finished.load(std::memory_order_acquire); }
  RankStatus StatusOf(int rank) const override;
  Clock::time_point LastHostWork() const override;

 private:
  struct Peer {
    std::atomic<bool> finished{false};
    std::atomic<bool> host_work{false};
    mutable std::mutex mutex;
    RankStatus status;  // seconds: when it was heard
    Clock::time_point heard;
  };

  const int rank_;
  const RemoteOptions options_;
  FirstFailure& failure_;
  mutable std::mutex namer_mutex_;
  NamerPtr namer_;
  StatusSlot status_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::atomic<Clock::rep> host_work_ended_{0};  // ticks of the clock; 0: there was none
  Sleeper sleeper_;

  std::mutex inbox_mutex_;
  std::condition_variable inbox_wake_;
  std::vector<Command> inbox_;
};

}  // namespace penstock::comm
