// src/memory/cpu/counting_allocator.cc
//
// The libtorch allocator that charges every block to a rank and a class: 64 bytes in front of each block say how large
// it is and who pays, so that freeing on any thread credits the right one.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <limits>
#include <new>

#include "base/this_rank.h"
#include "memory/accounting.h"
#include "memory/cpu/blocks.h"
#include "memory/cpu/counters.h"
#include "memory/faults.h"

namespace penstock::memory {
namespace {

thread_local BufferClass this_class = BufferClass::other;

struct alignas(64) Header {
  size_t bytes;     // asked for
  size_t capacity;  // of the block, header included
  std::atomic<uint64_t> charge;
};
static_assert(sizeof(Header) == 64, "data must stay 64-byte aligned");

Header* HeaderOf(void* data) { return static_cast<Header*>(data) - 1; }

[[noreturn]] void ThrowOutOfMemory(size_t bytes, Charge charge, const char* reason) {
  throw OutOfMemory(fmt::format("rank {} cannot allocate {} bytes ({}), {} bytes live: {}",
                                static_cast<int>(charge.slot) - 1, bytes, ToString(charge.buffer_class),
                                LiveOf(charge.slot), reason));
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &Free, cpu};
    const Charge charge{SlotOfRank(ThisRank()), this_class};
    if (FailsNow(charge.slot)) ThrowOutOfMemory(bytes, charge, "a fault was injected");
    if (bytes > std::numeric_limits<size_t>::max() / 4) ThrowOutOfMemory(bytes, charge, "too large");
    const Block block = TakeBlock(bytes + sizeof(Header));
    if (block.data == nullptr) ThrowOutOfMemory(bytes, charge, "the system has no memory left");
    auto* header = new (block.data) Header{bytes, block.capacity, Pack(charge)};
    Debit(charge, static_cast<int64_t>(bytes));
    CountAllocation(charge.slot);
    void* data = header + 1;
    return {data, data, &Free, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  static void Free(void* data) {
    if (data == nullptr) return;
    Header* header = HeaderOf(data);
    const size_t capacity = header->capacity;
    Credit(Unpack(header->charge.load(std::memory_order_relaxed)), static_cast<int64_t>(header->bytes));
    header->~Header();
    GiveBlock(header, capacity);
  }
};

// Never destroyed: tensors in static storage are freed after main.
CountingAllocator* TheAllocator() {
  static auto* const allocator = new CountingAllocator;
  return allocator;
}

Header* CountedHeaderOf(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const c10::DataPtr& data = tensor.storage().data_ptr();
  if (data.get_deleter() != &CountingAllocator::Free || data.get_context() == nullptr) return nullptr;
  return HeaderOf(data.get_context());
}

}  // namespace

std::string_view ToString(BufferClass c) {
  switch (c) {
    case BufferClass::other:
      return "other";
    case BufferClass::parameter:
      return "parameter";
    case BufferClass::gradient:
      return "gradient";
    case BufferClass::optimizer_state:
      return "optimizer state";
    case BufferClass::activation:
      return "activation";
    case BufferClass::boundary:
      return "boundary";
    case BufferClass::message:
      return "message";
    case BufferClass::statistic:
      return "statistic";
    case BufferClass::rows:
      return "rows";
  }
  return "?";
}

void InstallCountingAllocator() { c10::SetAllocator(c10::DeviceType::CPU, TheAllocator(), /*priority=*/1); }

bool CountingAllocatorInstalled() { return c10::GetAllocator(c10::DeviceType::CPU) == TheAllocator(); }

int OwnerOf(const at::Tensor& tensor) {
  const Header* header = CountedHeaderOf(tensor);
  return header == nullptr ? -2 : static_cast<int>(Unpack(header->charge.load(std::memory_order_relaxed)).slot) - 1;
}

bool TransferOwner(const at::Tensor& tensor, int rank) {
  Header* header = CountedHeaderOf(tensor);
  if (header == nullptr) return false;
  return TransferOwner(tensor, rank, Unpack(header->charge.load(std::memory_order_relaxed)).buffer_class);
}

bool TransferOwner(const at::Tensor& tensor, int rank, BufferClass c) {
  Header* header = CountedHeaderOf(tensor);
  if (header == nullptr) return false;
  const Charge to{SlotOfRank(rank), c};
  const auto bytes = static_cast<int64_t>(header->bytes);
  // Several receivers of one storage may claim it at the same time: each step moves the charge from whoever has it.
  const Charge from = Unpack(header->charge.exchange(Pack(to), std::memory_order_relaxed));
  if (from.slot == to.slot && from.buffer_class == to.buffer_class) return true;
  Credit(from, bytes);
  Debit(to, bytes);
  return true;
}

MemoryScope::MemoryScope(BufferClass c) : former_(this_class) { this_class = c; }
MemoryScope::~MemoryScope() { this_class = former_; }

}  // namespace penstock::memory
