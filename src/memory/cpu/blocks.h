// src/memory/cpu/blocks.h
//
// Raw blocks of memory, 64-byte aligned, from the block cache or from malloc. Callers keep the capacity they were
// given: it says where a block goes when it is freed.
#pragma once

#include <cstddef>

namespace penstock::memory {

struct Block {
  void* data = nullptr;  // null: the system has no memory left
  size_t capacity = 0;   // >= the bytes asked for
};

Block TakeBlock(size_t bytes);
void GiveBlock(void* data, size_t capacity) noexcept;

}  // namespace penstock::memory
