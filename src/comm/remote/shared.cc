#include "comm/remote/shared.h"

#include <algorithm>
#include <utility>

namespace penstock::comm {

Shared::Shared(int rank, int size, const RemoteOptions& options, FirstFailure& failure)
    : rank_(rank), options_(options), failure_(failure), namer_(std::make_shared<const TagNamer>(&PlainTagName)) {
  for (int r = 0; r < size; ++r) peers_.push_back(std::make_unique<Peer>());
}

void Shared::SetNamer(NamerPtr namer) {
  std::lock_guard lock(namer_mutex_);
  namer_ = std::move(namer);
}

NamerPtr Shared::namer() const {
  std::lock_guard lock(namer_mutex_);
  return namer_;
}

void Shared::Give(Command command) {
  {
    std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(std::move(command));
  }
  inbox_wake_.notify_one();
}

std::vector<Command> Shared::TakeCommands(std::chrono::microseconds longest) {
  std::unique_lock lock(inbox_mutex_);
  if (inbox_.empty() && longest.count() > 0) inbox_wake_.wait_for(lock, longest, [&] { return !inbox_.empty(); });
  return std::exchange(inbox_, {});
}

void Shared::Wait(const Condition& condition) {
  WaitFor(*this, sleeper_, rank_, condition, Clock::now(), options_.world.deadline, 0);
}

void Shared::Fail(int rank, std::exception_ptr what) {
  if (!failure_.Set(rank, std::move(what))) return;
  Notify();
  inbox_wake_.notify_one();
}

void Shared::SetPeerStatus(int peer, std::string action, double seconds) {
  Peer& p = *peers_[peer];
  std::lock_guard lock(p.mutex);
  p.status.action = std::move(action);
  p.status.seconds = seconds;
  p.heard = Clock::now();
}

void Shared::SetPeerFinished(int peer) {
  peers_[peer]->finished.store(true, std::memory_order_release);
  Notify();
}

void Shared::SetPeerHostWork(int peer, bool now) {
  // The time first: a waiter that no longer sees the flag sees when it went.
  if (!now) host_work_ended_.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
  peers_[peer]->host_work.store(now, std::memory_order_release);
}

RankStatus Shared::StatusOf(int rank) const {
  RankStatus status;
  const Peer& p = *peers_[rank];
  if (rank == rank_) {
    status = status_.Get();
  } else {
    std::lock_guard lock(p.mutex);
    status = p.status;
    if (!status.action.empty()) status.seconds += std::chrono::duration<double>(Clock::now() - p.heard).count();
  }
  status.finished = p.finished.load(std::memory_order_acquire);
  return status;
}

WaitRules::Clock::time_point Shared::LastHostWork() const {
  if (std::any_of(peers_.begin(), peers_.end(), [](const auto& p) { return p->host_work.load(); })) return Clock::now();
  return Clock::time_point(Clock::duration(host_work_ended_.load(std::memory_order_acquire)));
}

}  // namespace penstock::comm
