#include "comm/common/status_slot.h"

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
  const uint64_t next = written_.load(std::memory_order_relaxed) + 1;
  Text& to = texts_[next % 2];
  // Release on every word (free on x86): a reader that sees a word of this text also sees that the text before it was
  // published, and so that what it is reading has gone.
  for (size_t i = 0; i < kWords; ++i) to.words[i].store(text[i], std::memory_order_release);
  to.since_ns.store(NowNs(), std::memory_order_release);
  written_.store(next, std::memory_order_release);
}

RankStatus StatusSlot::Get() const {
  uint64_t text[kWords];
  int64_t since = 0;
  uint64_t before;
  do {  // again only when the writer has published another text meanwhile
    before = written_.load(std::memory_order_acquire);
    const Text& from = texts_[before % 2];
    for (size_t i = 0; i < kWords; ++i) text[i] = from.words[i].load(std::memory_order_acquire);
    since = from.since_ns.load(std::memory_order_acquire);
  } while (written_.load(std::memory_order_relaxed) != before);
  RankStatus status;
  const char* begin = reinterpret_cast<const char*>(text);
  status.action.assign(begin, strnlen(begin, sizeof(text)));
  status.seconds = since == 0 ? 0 : static_cast<double>(NowNs() - since) * 1e-9;
  status.finished = finished();
  return status;
}

}  // namespace penstock::comm
