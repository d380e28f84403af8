// src/comm/threads/status_slot.h
//
// What a rank does now, written by that rank and readable by any thread at any time without stopping it: a sequence
// lock over atomic words. One writer.
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
  RankStatus Get() const;

 private:
  static constexpr size_t kWords = 12;
  std::atomic<uint32_t> version_{0};  // odd while a write is under way
  std::atomic<bool> finished_{false};
  std::atomic<int64_t> since_ns_{0};
  std::array<std::atomic<uint64_t>, kWords> words_{};
};

}  // namespace penstock::comm
