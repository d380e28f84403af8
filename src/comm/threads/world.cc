#include "comm/threads/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "comm/common/cores.h"
#include "comm/threads/channel.h"
#include "comm/threads/group_queue.h"

namespace penstock::comm {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

World::World(int size, const ThreadWorldOptions& options)
    // Spinning pays (0.4 against 20 us per hand-over) only while every rank has a core of its own.
    : options_(options), spins_(size <= AvailableCores() ? 2000 : 0) {
  for (int r = 0; r < size; ++r) ranks_.push_back(std::make_unique<Rank>());
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) channels_.push_back(std::make_unique<Channel>(this, from, to));
  }
}

World::~World() = default;

void World::Fail(int rank, std::exception_ptr what) {
  if (!failure_.Set(rank, std::move(what))) return;
  NotifyAll();
  { std::lock_guard lock(finished_mutex_); }
  finished_wake_.notify_all();
}

void World::Wait(int rank, const Condition& condition, Clock::time_point since) {
  WaitFor(*this, ranks_[rank]->sleeper, rank, condition, since, options_.deadline, spins_);
}

void World::SetHostWork(int rank, bool now) {
  // The time first: a waiter that no longer sees the flag sees when it went.
  if (!now) host_work_ended_.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
  status(rank).SetHostWork(now);
}

Clock::time_point World::LastHostWork() const {
  if (std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->status.host_work(); }))
    return Clock::now();
  return Clock::time_point(Clock::duration(host_work_ended_.load(std::memory_order_acquire)));
}

void World::Notify(int rank) { ranks_[rank]->sleeper.Notify(); }

void World::NotifyAll() {
  for (int r = 0; r < size(); ++r) Notify(r);
}

void World::Finish(int rank) {
  status(rank).SetFinished();
  NotifyAll();
  {
    std::lock_guard lock(finished_mutex_);
    ++num_finished_;
  }
  finished_wake_.notify_all();
}

std::string World::StuckReport() const {
  const FailureRecord failure = failure_.Record();
  std::string text = fmt::format("rank {} failed: {}", failure.rank, failure.text);
  for (int r = 0; r < size(); ++r) {
    if (!status(r).finished())
      text += fmt::format("\nnot back after {:.1f} s: {}", Seconds(options_.grace), DescribeRank(r));
  }
  return text;
}

void World::WaitForRanks() {
  std::unique_lock lock(finished_mutex_);
  finished_wake_.wait(lock, [&] { return num_finished_ == size() || failed(); });
  const auto back = [&] { return num_finished_ == size(); };
  if (finished_wake_.wait_for(lock, options_.grace, back)) return;
  const std::string report = StuckReport();
  if (!options_.on_stuck) {
    std::fprintf(stderr, "%s\n", report.c_str());
    std::_Exit(1);
  }
  lock.unlock();
  options_.on_stuck(report);
  lock.lock();
  finished_wake_.wait(lock, back);
}

GroupQueue* World::group(const std::vector<int>& ranks, const std::string& name) {
  std::lock_guard lock(groups_mutex_);
  auto& queue = groups_[{name, ranks}];
  if (!queue) queue = std::make_unique<GroupQueue>(this, ranks, name);
  return queue.get();
}

void World::CheckNothingLeft() {
  if (failed()) return;
  std::string left;
  for (const auto& channel : channels_) left += channel->Leftover();
  for (const auto& [key, queue] : groups_) left += queue->Leftover();
  if (!left.empty()) Fail(-1, std::make_exception_ptr(OrderMismatch("all ranks have ended, but" + left)));
}

void World::Clear() {
  for (const auto& channel : channels_) channel->Clear();
  for (const auto& [key, queue] : groups_) queue->Clear();
}

}  // namespace penstock::comm
