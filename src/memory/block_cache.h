// src/memory/block_cache.h
//
// Free blocks kept for the next allocation, process-wide: page faults are the first lever of speed on CPU, and the
// pages of a kept block are there already (docs/decisions.md has the measurement). Blocks from 64 KB on, in size
// classes a sixteenth of a power of two apart, so at most 1/16 of a block is rounding; from 2 MB on they are aligned
// for huge pages and ask for them. Blocks below 64 KB go to malloc.
// Off under the address and thread sanitizers (they must see every allocation) and with PENSTOCK_BLOCK_CACHE=0.
// Threads: any, one mutex.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::memory {

struct BlockCacheStats {
  bool enabled = false;
  int64_t held_bytes = 0;  // free blocks kept
  int64_t held_blocks = 0;
  int64_t hits = 0;  // allocations served from kept blocks
  int64_t misses = 0;
  int64_t mapped_bytes = 0;  // kept and in use, with rounding: compare with the live bytes for the overhead
};
BlockCacheStats GetBlockCacheStats();

// Gives all kept blocks back to the system (between phases, before a measurement).
void TrimBlockCache();

}  // namespace penstock::memory
