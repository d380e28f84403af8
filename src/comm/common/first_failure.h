// src/comm/common/first_failure.h
//
// The failure that ended a world: the first one counts, everybody sees it in the same words, and the launcher throws
// it. Threads: all of it may be called from any thread.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <string>

#include "comm/communicator.h"

namespace penstock::comm {

// A failure as it crosses to another process.
struct FailureRecord {
  enum class Kind : uint8_t { user, order_mismatch, internal, peer_lost, world, foreign };
  Kind kind = Kind::world;
  int rank = -1;       // whose exception it is; -1: of nobody
  int lost_rank = -1;  // of a PeerLost
  std::string text;    // of the exception, without the rank
  friend bool operator==(const FailureRecord&, const FailureRecord&) = default;
};
FailureRecord RecordOf(int rank, const std::exception_ptr& what);
std::exception_ptr ExceptionOf(const FailureRecord& record);

class FirstFailure {
 public:
  // Only the first call counts: true for that one. `what`: an exception of `rank` (-1: of nobody).
  bool Set(int rank, std::exception_ptr what);
  // Puts another in its place, when ranks failed at the same time and agree afterwards on one.
  void Replace(const FailureRecord& record);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Only when failed().
  FailureRecord Record() const;
  // Throws what `rank` is to see of it, with what it was doing. Only when failed().
  [[noreturn]] void ThrowFor(int rank, const std::string& doing) const;
  // As the launcher throws it: with the rank in the message. Nothing when there was none.
  void Rethrow() const;

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::exception_ptr first_;
  FailureRecord record_;
};

}  // namespace penstock::comm
