// src/comm/shards.h
//
// How n elements are split over the ranks of a group: shard i is [bounds[i], bounds[i+1]), bounds[0] = 0,
// bounds[size] = n. Shards may be empty.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::comm {

// Contiguous shards of nearly equal length whose inner borders are multiples of `align` elements: the first shards
// take the surplus blocks. align = 1024 keeps the blocks of the norm whole (docs/numerics.md R9).
std::vector<int64_t> ShardBounds(int64_t n, int parts, int64_t align = 1);

// InternalError unless `bounds` is ascending, starts with 0, ends with n and has parts + 1 entries.
void CheckShardBounds(const std::vector<int64_t>& bounds, int64_t n, int parts);

}  // namespace penstock::comm
