// src/memory/cpu/counters.h
//
// The counters behind Usage: one slot per rank, relaxed atomics on a cache line of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "memory/accounting.h"

namespace penstock::memory {

// Who pays for a block, in one word so that it changes hands in one step.
struct Charge {
  uint32_t slot;  // rank + 1
  BufferClass buffer_class;
};
constexpr uint64_t Pack(Charge c) { return uint64_t{c.slot} << 8 | static_cast<uint64_t>(c.buffer_class); }
constexpr Charge Unpack(uint64_t word) {
  return {static_cast<uint32_t>(word >> 8), static_cast<BufferClass>(word & 0xff)};
}

// InternalError for ranks outside [-1, kMaxRanks).
uint32_t SlotOfRank(int rank);

void Debit(Charge charge, int64_t bytes);            // the payer has `bytes` more
void Credit(Charge charge, int64_t bytes) noexcept;  // and less
int64_t LiveOf(uint32_t slot);
void CountAllocation(uint32_t slot);
// True when this allocation is the one FailAllocation named.
bool FailsNow(uint32_t slot);

}  // namespace penstock::memory
