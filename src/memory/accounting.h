// src/memory/accounting.h
//
// Bytes of tensor memory per rank and buffer class, live and at the peak. Counted is what tensors asked for (not
// headers, rounding or cached blocks: see block_cache.h) through the counting allocator; scratch of BLAS and oneDNN and
// foreign memory (from_blob, mapped files) is not seen.
//
// A block is charged to the rank of the thread that allocates it (ThisRank(); slot "no rank" for -1) and to the buffer
// class in force there (MemoryScope). Freeing on any thread credits the owner. Handing a tensor to another rank leaves
// the charge where it was until TransferOwner.
// Threads: all of it from any thread; counters are atomic, a Usage is not one instant of a running rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock::memory {

// Design section 2, plus `other` for what nobody labelled (temporaries of operations).
enum class BufferClass : uint8_t {
  other,
  parameter,
  gradient,
  optimizer_state,
  activation,
  boundary,
  message,
  statistic,
  rows,
};
inline constexpr int kNumBufferClasses = 9;
std::string_view ToString(BufferClass c);

// Ranks 0 .. kMaxRanks - 1 have a slot each.
inline constexpr int kMaxRanks = 1024;

using BytesByClass = std::array<int64_t, kNumBufferClasses>;

struct Usage {
  int64_t live = 0;
  int64_t peak = 0;  // of the sum over classes
  BytesByClass live_by_class{};
  BytesByClass peak_by_class{};     // each class at its own peak; adds up to more than `peak`
  BytesByClass at_peak_by_class{};  // what `peak` was made of
  int64_t allocations = 0;
};

// Makes libtorch's CPU tensors counted from here on. Once, before other threads exist; later calls do nothing.
// Tensors made before stay uncounted and free themselves as before.
void InstallCountingAllocator();
bool CountingAllocatorInstalled();

// rank = -1: threads without a rank.
Usage UsageOf(int rank);
// Peaks become what is live now.
void ResetPeak(int rank);

// Charges the storage of `tensor` to another rank, and to a class when given. False (and nothing happens) when the
// storage is not the counting allocator's or empty. Views share a storage: they move together.
bool TransferOwner(const at::Tensor& tensor, int rank);
bool TransferOwner(const at::Tensor& tensor, int rank, BufferClass c);
// Who pays for it now; -2 when nobody does.
int OwnerOf(const at::Tensor& tensor);

// The class that allocations of this thread are charged to, for a scope. Scopes nest; a new thread has `other`.
class MemoryScope {
 public:
  explicit MemoryScope(BufferClass c);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  BufferClass former_;
};

}  // namespace penstock::memory
