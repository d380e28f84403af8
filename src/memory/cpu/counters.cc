#include "memory/cpu/counters.h"

#include "base/error.h"
#include "memory/faults.h"

namespace penstock::memory {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

struct alignas(64) Slot {
  std::atomic<int64_t> live{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> until_failure{0};  // 0: no fault armed
  std::array<std::atomic<int64_t>, kNumBufferClasses> class_live{};
  std::array<std::atomic<int64_t>, kNumBufferClasses> class_peak{};
  std::array<std::atomic<int64_t>, kNumBufferClasses> class_at_peak{};
};

Slot slots[kMaxRanks + 1];

// True when `value` is a new maximum.
bool RaiseTo(std::atomic<int64_t>& peak, int64_t value) {
  int64_t seen = peak.load(kRelaxed);
  while (value > seen) {
    if (peak.compare_exchange_weak(seen, value, kRelaxed)) return true;
  }
  return false;
}

}  // namespace

uint32_t SlotOfRank(int rank) {
  PENSTOCK_CHECK(rank >= -1 && rank < kMaxRanks, "memory of rank {}; there are slots for {} ranks", rank, kMaxRanks);
  return static_cast<uint32_t>(rank + 1);
}

void Debit(Charge charge, int64_t bytes) {
  Slot& slot = slots[charge.slot];
  const auto c = static_cast<size_t>(charge.buffer_class);
  RaiseTo(slot.class_peak[c], slot.class_live[c].fetch_add(bytes, kRelaxed) + bytes);
  if (RaiseTo(slot.peak, slot.live.fetch_add(bytes, kRelaxed) + bytes)) {
    for (size_t i = 0; i < kNumBufferClasses; ++i) {
      slot.class_at_peak[i].store(slot.class_live[i].load(kRelaxed), kRelaxed);
    }
  }
}

void Credit(Charge charge, int64_t bytes) noexcept {
  Slot& slot = slots[charge.slot];
  slot.class_live[static_cast<size_t>(charge.buffer_class)].fetch_sub(bytes, kRelaxed);
  slot.live.fetch_sub(bytes, kRelaxed);
}

int64_t LiveOf(uint32_t slot) { return slots[slot].live.load(kRelaxed); }

void CountAllocation(uint32_t slot) { slots[slot].allocations.fetch_add(1, kRelaxed); }

bool FailsNow(uint32_t slot) {
  std::atomic<int64_t>& left = slots[slot].until_failure;
  if (left.load(kRelaxed) <= 0) return false;
  return left.fetch_sub(1, kRelaxed) == 1;
}

void FailAllocation(int rank, int64_t n) { slots[SlotOfRank(rank)].until_failure.store(n, kRelaxed); }

Usage UsageOf(int rank) {
  const Slot& slot = slots[SlotOfRank(rank)];
  Usage usage;
  usage.live = slot.live.load(kRelaxed);
  usage.peak = slot.peak.load(kRelaxed);
  usage.allocations = slot.allocations.load(kRelaxed);
  for (size_t i = 0; i < kNumBufferClasses; ++i) {
    usage.live_by_class[i] = slot.class_live[i].load(kRelaxed);
    usage.peak_by_class[i] = slot.class_peak[i].load(kRelaxed);
    usage.at_peak_by_class[i] = slot.class_at_peak[i].load(kRelaxed);
  }
  return usage;
}

void ResetPeak(int rank) {
  Slot& slot = slots[SlotOfRank(rank)];
  slot.peak.store(slot.live.load(kRelaxed), kRelaxed);
  for (size_t i = 0; i < kNumBufferClasses; ++i) {
    const int64_t live = slot.class_live[i].load(kRelaxed);
    slot.class_peak[i].store(live, kRelaxed);
    slot.class_at_peak[i].store(live, kRelaxed);
  }
}

}  // namespace penstock::memory
