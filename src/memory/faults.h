// src/memory/faults.h
//
// Out of memory: the error, and how tests provoke it.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace penstock::memory {

// The message names rank, bytes asked for, class, and bytes live.
class OutOfMemory : public WorldError {
 public:
  using WorldError::WorldError;
};

// The n-th tensor allocation (n >= 1) of `rank` counted from now fails with OutOfMemory, once. n = 0: none does.
void FailAllocation(int rank, int64_t n);

}  // namespace penstock::memory
