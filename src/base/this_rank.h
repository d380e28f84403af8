// src/base/this_rank.h
//
// Which rank the calling thread works for: -1 (no rank: main, launcher) until a launcher says otherwise. A plain
// thread-local slot, so that modules that must not know each other (comm starts ranks, memory charges them) agree.
// Threads: every thread has its own; a new thread starts with -1 and does not inherit.
#pragma once

namespace penstock {

int ThisRank();
void SetThisRank(int rank);

// Sets the rank of the calling thread for a scope, and restores the former one.
class ThisRankScope {
 public:
  explicit ThisRankScope(int rank) : former_(ThisRank()) { SetThisRank(rank); }
  ~ThisRankScope() { SetThisRank(former_); }
  ThisRankScope(const ThisRankScope&) = delete;
  ThisRankScope& operator=(const ThisRankScope&) = delete;

 private:
  int former_;
};

}  // namespace penstock
