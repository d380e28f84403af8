// Bytes are charged to the rank and class that allocate, wherever they are freed.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/this_rank.h"
#include "memory/accounting.h"
#include "memory/block_cache.h"
#include "memory/cpu/size_class.h"
#include "memory/faults.h"

namespace penstock::memory {
namespace {

int64_t Of(const BytesByClass& bytes, BufferClass c) { return bytes[static_cast<size_t>(c)]; }

class MemoryTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

TEST_F(MemoryTest, IsInstalled) {
  EXPECT_TRUE(CountingAllocatorInstalled());
  InstallCountingAllocator();
  EXPECT_TRUE(CountingAllocatorInstalled());
}

TEST_F(MemoryTest, LiveAndPeakAreExact) {
  const ThisRankScope rank(10);
  ASSERT_EQ(UsageOf(10).live, 0);
  {
    const at::Tensor a = at::empty({1000}, at::kFloat);
    EXPECT_EQ(UsageOf(10).live, 4000);
    EXPECT_EQ(OwnerOf(a), 10);
    {
      const at::Tensor b = at::empty({1 << 20}, at::kDouble);
      EXPECT_EQ(UsageOf(10).live, 4000 + (8 << 20));
    }
    EXPECT_EQ(UsageOf(10).live, 4000);
    EXPECT_EQ(UsageOf(10).peak, 4000 + (8 << 20));
    EXPECT_EQ(UsageOf(10).allocations, 2);
    ResetPeak(10);
    EXPECT_EQ(UsageOf(10).peak, 4000);
  }
  EXPECT_EQ(UsageOf(10).live, 0);
  EXPECT_EQ(UsageOf(10).peak, 4000);
}

TEST_F(MemoryTest, EmptyTensorsAndAlignment) {
  const ThisRankScope rank(11);
  const at::Tensor none = at::empty({0});
  EXPECT_EQ(UsageOf(11).live, 0);
  EXPECT_FALSE(TransferOwner(none, 12));
  EXPECT_FALSE(TransferOwner(at::Tensor(), 12));
  EXPECT_EQ(OwnerOf(none), -2);
  for (const int64_t n : {1, 15, 1000, 16'368, 16'384, 100'000, 524'288, 3'000'000}) {
    const at::Tensor t = at::ones({n});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 64, 0u) << n;
    EXPECT_EQ(t.sum().item<float>(), static_cast<float>(n));
  }
  at::Tensor grows = at::zeros({0});
  grows.resize_({100});
  EXPECT_EQ(OwnerOf(grows), 11);
}

TEST_F(MemoryTest, ForeignMemoryIsLeftAlone) {
  float buffer[4] = {};
  const at::Tensor t = at::from_blob(buffer, {4});
  EXPECT_EQ(OwnerOf(t), -2);
  EXPECT_FALSE(TransferOwner(t, 1));
}

TEST_F(MemoryTest, FreedOnAnotherThreadCreditsTheOwner) {
  constexpr int kRanks = 4, kEach = 200;
  std::vector<std::vector<at::Tensor>> made(kRanks);
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      SetThisRank(20 + r);
      for (int i = 0; i < kEach; ++i) made[r].push_back(at::empty({100 * (i + 1)}));
    });
  }
  for (auto& t : threads) t.join();
  threads.clear();
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(UsageOf(20 + r).live, 4 * 100 * kEach * (kEach + 1) / 2);
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      SetThisRank(20 + r);
      made[(r + 1) % kRanks].clear();
    });
  }
  for (auto& t : threads) t.join();
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(UsageOf(20 + r).live, 0) << r;
}

TEST_F(MemoryTest, TransferMovesTheChargeOfTheStorage) {
  const ThisRankScope rank(30);
  at::Tensor t = at::empty({1000});
  const at::Tensor view = t.slice(0, 10, 20);
  EXPECT_TRUE(TransferOwner(view, 31, BufferClass::boundary));
  EXPECT_EQ(UsageOf(30).live, 0);
  EXPECT_EQ(UsageOf(31).live, 4000);
  EXPECT_EQ(UsageOf(31).peak, 4000);
  EXPECT_EQ(Of(UsageOf(31).live_by_class, BufferClass::boundary), 4000);
  EXPECT_TRUE(TransferOwner(t, 32));  // keeps the class
  EXPECT_EQ(Of(UsageOf(32).live_by_class, BufferClass::boundary), 4000);
  EXPECT_EQ(UsageOf(31).live, 0);
  EXPECT_THROW(TransferOwner(t, kMaxRanks), InternalError);
}

// Several receivers of one storage claim it at the same time: nothing is lost, whoever is last has it.
TEST_F(MemoryTest, ConcurrentTransfersLoseNothing) {
  at::Tensor t = at::empty({256});
  std::vector<std::thread> threads;
  for (int r = 40; r < 44; ++r) {
    threads.emplace_back([&t, r] {
      for (int i = 0; i < 1000; ++i) TransferOwner(t, r);
    });
  }
  for (auto& thread : threads) thread.join();
  int64_t sum = 0;
  for (int r = 40; r < 44; ++r) sum += UsageOf(r).live;
  EXPECT_EQ(sum, 1024);
  t = at::Tensor();
  for (int r = 40; r < 44; ++r) EXPECT_EQ(UsageOf(r).live, 0);
}

TEST_F(MemoryTest, PeaksSplitByClass) {
  const ThisRankScope rank(50);
  at::Tensor parameter, gradient;
  {
    const MemoryScope scope(BufferClass::parameter);
    parameter = at::empty({100}, at::kFloat);
    {
      const MemoryScope inner(BufferClass::activation);
      const at::Tensor activation = at::empty({300}, at::kFloat);
    }
    gradient = at::empty({25}, at::kFloat);  // the outer class is back
  }
  const at::Tensor other = at::empty({10}, at::kFloat);
  const Usage usage = UsageOf(50);
  EXPECT_EQ(Of(usage.live_by_class, BufferClass::parameter), 500);
  EXPECT_EQ(Of(usage.peak_by_class, BufferClass::parameter), 500);
  EXPECT_EQ(Of(usage.peak_by_class, BufferClass::activation), 1200);
  EXPECT_EQ(Of(usage.peak_by_class, BufferClass::other), 40);
  EXPECT_EQ(usage.peak, 1600);
  EXPECT_EQ(Of(usage.at_peak_by_class, BufferClass::parameter), 400);
  EXPECT_EQ(Of(usage.at_peak_by_class, BufferClass::activation), 1200);
  EXPECT_EQ(Of(usage.at_peak_by_class, BufferClass::other), 0);
  ResetPeak(50);
  EXPECT_EQ(Of(UsageOf(50).peak_by_class, BufferClass::activation), 0);
}

TEST_F(MemoryTest, InjectedFaultHitsTheNthAllocationOfTheRank) {
  const ThisRankScope rank(60);
  FailAllocation(60, 3);
  std::vector<at::Tensor> made;
  made.push_back(at::empty({4}));
  {
    const ThisRankScope other(61);
    made.push_back(at::empty({4}));
  }
  made.push_back(at::empty({4}));
  const MemoryScope scope(BufferClass::gradient);
  try {
    made.push_back(at::empty({4}));
    ADD_FAILURE() << "no exception";
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(std::string(e.what()),
              "rank 60 cannot allocate 16 bytes (gradient), 32 bytes live: a fault was injected");
  }
  EXPECT_EQ(UsageOf(60).live, 32);
  made.push_back(at::empty({4}));  // once
  FailAllocation(60, 1);
  FailAllocation(60, 0);
  made.push_back(at::empty({4}));
}

TEST_F(MemoryTest, ImpossibleSizeIsOutOfMemory) {
  EXPECT_THROW(at::empty({int64_t{1} << 46}, at::kDouble), OutOfMemory);
}

TEST(SizeClassTest, RoundsUpByAtMostASixteenth) {
  int last = -1;
  for (size_t bytes = kSmallestCached; bytes < (size_t{1} << 32); bytes += bytes / 97 + 1) {
    const int index = SizeClassOf(bytes);
    const size_t size = SizeOfClass(index);
    EXPECT_GE(size, bytes);
    EXPECT_LE(size - bytes, bytes / 16);
    EXPECT_GE(index, last);
    EXPECT_EQ(SizeClassOf(size), index);
    if (index > 0) {
      EXPECT_LT(SizeOfClass(index - 1), bytes);
    }
    last = index;
  }
}

TEST_F(MemoryTest, CacheGivesBlocksAgain) {
  if (!GetBlockCacheStats().enabled) GTEST_SKIP() << "the block cache is off (sanitizer or PENSTOCK_BLOCK_CACHE=0)";
  TrimBlockCache();
  EXPECT_EQ(GetBlockCacheStats().held_bytes, 0);
  const BlockCacheStats before = GetBlockCacheStats();
  for (const int64_t kilobytes : {100, 1000, 5000}) {
    const void* first;
    {
      const at::Tensor t = at::empty({kilobytes * 1024}, at::kByte);
      first = t.const_data_ptr();
    }
    EXPECT_GE(GetBlockCacheStats().held_bytes, kilobytes * 1024);
    const at::Tensor again = at::empty({kilobytes * 1024 + 100}, at::kByte);  // another size of the same class
    EXPECT_EQ(again.const_data_ptr(), first);
  }
  EXPECT_EQ(GetBlockCacheStats().hits - before.hits, 3);
  EXPECT_EQ(GetBlockCacheStats().misses - before.misses, 3);
  EXPECT_EQ(GetBlockCacheStats().held_blocks, 3);
  // Small ones do not go there.
  { const at::Tensor t = at::empty({60 * 1024}, at::kByte); }
  EXPECT_EQ(GetBlockCacheStats().held_blocks, 3);
  TrimBlockCache();
  EXPECT_EQ(GetBlockCacheStats().held_blocks, 0);
  EXPECT_EQ(GetBlockCacheStats().mapped_bytes, before.mapped_bytes);
}

TEST_F(MemoryTest, ManyThreadsThroughTheCache) {
  std::vector<std::thread> threads;
  for (int r = 0; r < 4; ++r) {
    threads.emplace_back([r] {
      SetThisRank(70 + r);
      for (int i = 0; i < 300; ++i) {
        const at::Tensor t = at::full({20'000 + (i * 7919 + r) % 30'000}, r);
        EXPECT_EQ(t[i].item<int64_t>(), r);
      }
      SetThisRank(-1);
    });
  }
  for (auto& t : threads) t.join();
  for (int r = 0; r < 4; ++r) EXPECT_EQ(UsageOf(70 + r).live, 0);
}

}  // namespace
}  // namespace penstock::memory
