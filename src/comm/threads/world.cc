#include "comm/threads/world.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <typeinfo>

#include "comm/threads/channel.h"
#include "comm/threads/cores.h"
#include "comm/threads/group_queue.h"

namespace penstock::comm {
namespace {

using Clock = std::chrono::steady_clock;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

std::string TextOf(const std::exception_ptr& what) {
  try {
    std::rethrow_exception(what);
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();  // the frames of libtorch help nobody who reads the message
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

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
  {
    std::lock_guard lock(failure_mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    first_ = std::move(what);
    first_rank_ = rank;
    first_text_ = TextOf(first_);
    failed_.store(true, std::memory_order_release);
  }
  NotifyAll();
  { std::lock_guard lock(finished_mutex_); }
  finished_wake_.notify_all();
}

void World::ThrowFailure(int rank, const std::string& doing) const {
  std::lock_guard lock(failure_mutex_);
  try {
    std::rethrow_exception(first_);
  } catch (const OrderMismatch&) {
    throw OrderMismatch(first_text_);
  } catch (...) {
    throw PeerLost(first_rank_,
                   fmt::format("rank {} gives up {}: rank {} failed: {}", rank, doing, first_rank_, first_text_));
  }
}

void World::RethrowFirst() const {
  std::lock_guard lock(failure_mutex_);
  if (!failed_.load(std::memory_order_relaxed)) return;
  const std::string text = first_rank_ < 0 ? first_text_ : fmt::format("rank {}: {}", first_rank_, first_text_);
  try {
    std::rethrow_exception(first_);
  } catch (const Error& e) {
    // The message gains the rank where the type is one that can be made again; a derived type stays what it is.
    if (typeid(e) == typeid(UserError)) throw UserError(text);
    if (typeid(e) == typeid(OrderMismatch)) throw OrderMismatch(text);
    if (typeid(e) == typeid(InternalError)) throw InternalError(text);
    if (typeid(e) == typeid(WorldError)) throw WorldError(text);
    if (const auto* lost = dynamic_cast<const PeerLost*>(&e)) throw PeerLost(lost->rank(), text);
    throw;
  } catch (...) {
    std::throw_with_nested(RankFailed(text));
  }
}

void World::Wait(int rank, const Condition& condition, Clock::time_point since) {
  const auto check_failure = [&] {
    if (failed()) ThrowFailure(rank, condition.Describe());
  };
  check_failure();
  for (int i = 0; i < spins_; ++i) {
    if (condition.Ready()) return;
    Pause();
  }
  auto deadline = since + options_.deadline;
  Rank& self = *ranks_[rank];
  int lost = -1;
  {
    std::unique_lock lock(self.mutex);
    bool late = false;
    for (;;) {
      // In this order: what a peer did before it finished counts.
      const int missing = condition.MissingRank();
      const bool gone = missing >= 0 && missing != rank && status(missing).finished();
      if (condition.Ready()) return;
      if (failed()) break;
      if (gone && condition.MissingRank() == missing) {
        lost = missing;
        break;
      }
      if (late) break;
      late = self.wake.wait_until(lock, deadline) == std::cv_status::timeout && Clock::now() >= deadline;
      if (!late) continue;
      const auto extended = LastHostWork() + options_.deadline;
      if (extended <= Clock::now()) continue;
      late = false;
      deadline = extended;
    }
  }
  check_failure();
  if (lost >= 0) {
    FailWith(rank, PeerLost(lost, fmt::format("rank {} waits for rank {} ({}), but rank {} has ended", rank, lost,
                                              condition.Describe(), lost)));
  }
  const int missing = condition.MissingRank();
  FailWith(rank, PeerLost(missing, fmt::format("rank {} waits for {} ({}); no answer within {:.1f} s", rank,
                                               missing >= 0 ? DescribeRank(missing) : std::string("another rank"),
                                               condition.Describe(), Seconds(Clock::now() - since))));
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

void World::Notify(int rank) {
  Rank& r = *ranks_[rank];
  { std::lock_guard lock(r.mutex); }  // a sleeper has either seen the change or is asleep by now
  r.wake.notify_all();
}

void World::NotifyAll() {
  for (int r = 0; r < size(); ++r) Notify(r);
}

std::string World::DescribeRank(int rank) const {
  const RankStatus s = status(rank).Get();
  if (s.finished) return fmt::format("rank {}, which has ended", rank);
  if (s.action.empty()) return fmt::format("rank {}", rank);
  return fmt::format("rank {}, which is at '{}' since {:.1f} s", rank, s.action, s.seconds);
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
  std::string text;
  {
    std::lock_guard lock(failure_mutex_);
    text = fmt::format("rank {} failed: {}", first_rank_, first_text_);
  }
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
