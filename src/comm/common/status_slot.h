// src/comm/common/status_slot.h
//
// What a rank does now, written by that rank and readable by any thread at any time without stopping it. Two texts of
// atomic words take turns, so that a writer that is stopped in the middle (a rank that hangs, the very moment somebody
// reads) leaves the last whole text readable. One writer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "comm/communicator.h"

namespace penstock::comm {

class StatusSlot {
 public:
  // Keeps the first 95 bytes.
  void Set(std::string_view action);
  void SetFinished() { finished_.store(true, std::memory_order_release); }
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  void SetHostWork(bool now) { host_work_.store(now, std::memory_order_release); }
  bool host_work() const { return host_work_.load(std::memory_order_acquire); }
  RankStatus Get() const;

 private:
  static constexpr size_t kWords = 12;
  struct Text {
    std::atomic<int64_t> since_ns{0};
    std::array<std::atomic<uint64_t>, kWords> words{};
  };
  std::atomic<uint64_t> written_{0};  // texts so far; the last one is in texts_[written_ % 2]
  std::array<Text, 2> texts_;
  std::atomic<bool> finished_{false};
  std::atomic<bool> host_work_{false};
};

}  // namespace penstock::comm
