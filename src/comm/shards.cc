#include "comm/shards.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::comm {

std::vector<int64_t> ShardBounds(int64_t n, int parts, int64_t align) {
  PENSTOCK_CHECK(n >= 0 && parts >= 1 && align >= 1, "{} elements over {} shards of multiples of {}", n, parts, align);
  const int64_t blocks = (n + align - 1) / align;
  std::vector<int64_t> bounds(parts + 1, 0);
  for (int i = 0; i < parts; ++i) {
    const int64_t mine = blocks / parts + (i < blocks % parts ? 1 : 0);
    bounds[i + 1] = std::min(n, bounds[i] + mine * align);
  }
  return bounds;
}

void CheckShardBounds(const std::vector<int64_t>& bounds, int64_t n, int parts) {
  PENSTOCK_CHECK_EQ(bounds.size(), static_cast<size_t>(parts) + 1);
  PENSTOCK_CHECK_EQ(bounds.front(), 0);
  PENSTOCK_CHECK_EQ(bounds.back(), n);
  PENSTOCK_CHECK(std::is_sorted(bounds.begin(), bounds.end()), "shard bounds must ascend");
}

}  // namespace penstock::comm
