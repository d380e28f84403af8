#include "memory/cpu/blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "memory/block_cache.h"
#include "memory/cpu/size_class.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PENSTOCK_SANITIZED 1
#else
#define PENSTOCK_SANITIZED 0
#endif

namespace penstock::memory {
namespace {

constexpr size_t kHugePage = 2 << 20;

// Sanitizers end the process on requests beyond their limits instead of refusing them.
constexpr size_t kLargestRequest = PENSTOCK_SANITIZED ? size_t{1} << 39 : SIZE_MAX;

bool CacheWanted() {
  if (PENSTOCK_SANITIZED) return false;
  const char* value = std::getenv("PENSTOCK_BLOCK_CACHE");
  return value == nullptr || std::strcmp(value, "0") != 0;
}

// Maps whole huge pages at a huge-page boundary: an unaligned mapping would have none at its ends.
void* MapHuge(size_t bytes) {
  const size_t mapped = bytes + kHugePage;
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(raw);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  const size_t after = mapped - before - bytes;
  if (after > 0) munmap(begin + before + bytes, after);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // only advice: without it the pages are small
  return begin + before;
}

void* FromSystem(size_t bytes) {
  if (bytes >= kHugePage) return MapHuge(bytes);
  void* data = nullptr;
  return posix_memalign(&data, 64, bytes) == 0 ? data : nullptr;
}

void ToSystem(void* data, size_t bytes) {
  if (bytes >= kHugePage) {
    munmap(data, bytes);
  } else {
    std::free(data);
  }
}

class Cache {
 public:
  Block Take(size_t bytes) {
    const int index = SizeClassOf(bytes);
    if (index >= kNumSizeClasses) return {};
    const size_t capacity = SizeOfClass(index);
    {
      std::lock_guard lock(mutex_);
      if (Free* block = lists_[index]) {
        lists_[index] = block->next;
        stats_.held_bytes -= static_cast<int64_t>(capacity);
        --stats_.held_blocks;
        ++stats_.hits;
        return {block, capacity};
      }
      ++stats_.misses;
    }
    void* data = FromSystem(capacity);
    if (data == nullptr) {
      Trim();  // the kept blocks of other sizes may be what is missing
      data = FromSystem(capacity);
      if (data == nullptr) return {};
    }
    std::lock_guard lock(mutex_);
    stats_.mapped_bytes += static_cast<int64_t>(capacity);
    return {data, capacity};
  }

  void Give(void* data, size_t capacity) noexcept {
    const int index = SizeClassOf(capacity);
    std::lock_guard lock(mutex_);
    lists_[index] = new (data) Free{lists_[index]};
    stats_.held_bytes += static_cast<int64_t>(capacity);
    ++stats_.held_blocks;
  }

  void Trim() {
    std::array<Free*, kNumSizeClasses> lists{};
    {
      std::lock_guard lock(mutex_);
      lists.swap(lists_);
      stats_.mapped_bytes -= stats_.held_bytes;
      stats_.held_bytes = 0;
      stats_.held_blocks = 0;
    }
    for (int index = 0; index < kNumSizeClasses; ++index) {
      while (lists[index] != nullptr) {
        Free* next = lists[index]->next;
        ToSystem(lists[index], SizeOfClass(index));
        lists[index] = next;
      }
    }
  }

  BlockCacheStats Stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  // Lies in the free block itself, so giving back needs no memory.
  struct Free {
    Free* next;
  };
  std::mutex mutex_;
  std::array<Free*, kNumSizeClasses> lists_{};
  BlockCacheStats stats_{.enabled = true};
};

// Null when switched off. Never destroyed: tensors in static storage are freed after main.
Cache* TheCache() {
  static Cache* const cache = CacheWanted() ? new Cache : nullptr;
  return cache;
}

}  // namespace

Block TakeBlock(size_t bytes) {
  if (bytes > kLargestRequest) return {};
  Cache* cache = TheCache();
  if (cache != nullptr && bytes >= kSmallestCached) return cache->Take(bytes);
  void* data = nullptr;
  if (posix_memalign(&data, 64, bytes) != 0) return {};
  return {data, bytes};
}

void GiveBlock(void* data, size_t capacity) noexcept {
  Cache* cache = TheCache();
  if (cache != nullptr && capacity >= kSmallestCached) {
    cache->Give(data, capacity);
  } else {
    std::free(data);
  }
}

BlockCacheStats GetBlockCacheStats() {
  Cache* cache = TheCache();
  return cache != nullptr ? cache->Stats() : BlockCacheStats{};
}

void TrimBlockCache() {
  if (Cache* cache = TheCache()) cache->Trim();
}

}  // namespace penstock::memory
