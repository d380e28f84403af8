#include "comm/threads/status_slot.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace penstock::comm {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void StatusSlot::Set(std::string_view action) {
  uint64_t text[kWords] = {};
  const size_t length = std::min(action.size(), sizeof(text) - 1);
  std::memcpy(text, action.data(), length);
  const uint32_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  // Release on every word (free on x86): a reader that sees a new word also sees the odd version.
  for (size_t i = 0; i < kWords; ++i) words_[i].store(text[i], std::memory_order_release);
  since_ns_.store(NowNs(), std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

RankStatus StatusSlot::Get() const {
  uint64_t text[kWords];
  int64_t since = 0;
  // A writer that is caught again and again only costs accuracy, so give up after a while.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint32_t before = version_.load(std::memory_order_acquire);
    for (size_t i = 0; i < kWords; ++i) text[i] = words_[i].load(std::memory_order_acquire);
    since = since_ns_.load(std::memory_order_acquire);
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) break;
  }
  RankStatus status;
  const char* begin = reinterpret_cast<const char*>(text);
  status.action.assign(begin, strnlen(begin, sizeof(text)));
  status.seconds = since == 0 ? 0 : static_cast<double>(NowNs() - since) * 1e-9;
  status.finished = finished();
  return status;
}

}  // namespace penstock::comm
