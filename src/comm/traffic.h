// src/comm/traffic.h
//
// Bytes and messages a rank sent, by kind of operation. Counted is what a transport between machines sends with the
// direct owner-computes algorithms (docs/numerics.md R4), also where ranks are threads and a hand-over is a pointer,
// so that the numbers of a run compare with the cost model. D ranks of a group, n bytes of the whole tensor, s_r bytes
// of the shard that rank r owns (ShardBounds(n, D) where the caller gives no bounds), k_r tree nodes rank r brings:
//   send                  n                                 1 message
//   all_reduce            (n - s_r) + (D-1) s_r             2 (D-1)     even shards: 2 (D-1)/D n
//   all_reduce_tree       k_r (n - s_r) + (D-1) s_r         2 (D-1)     one node each, even shards: the same
//   reduce_scatter        n - s_r                           D-1
//   reduce_scatter_tree   k_r (n - s_r)                     D-1         (all nodes for one owner travel together)
//   all_gather            (D-1) s_r                         D-1
//   all_gather_v          (D-1) bytes of own part           D-1
//   all_to_all_v          bytes of the parts for others     D-1
//   broadcast             root: (D-1) n, others 0           root: D-1
//   barrier               0                                 ceil(log2 D)
// Messages without bytes are not counted (except the barrier's).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock::comm {

enum class CommKind : uint8_t {
  send,
  all_reduce,
  all_reduce_tree,
  reduce_scatter,
  reduce_scatter_tree,
  all_gather,
  all_gather_v,
  all_to_all_v,
  broadcast,
  barrier,
};
inline constexpr int kNumCommKinds = 10;

std::string_view ToString(CommKind kind);

struct Traffic {
  uint64_t messages = 0;
  uint64_t bytes = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

class TrafficCounters {
 public:
  const Traffic& of(CommKind kind) const { return sent_[static_cast<int>(kind)]; }
  Traffic Total() const;
  void Add(CommKind kind, uint64_t messages, uint64_t bytes) {
    sent_[static_cast<int>(kind)].messages += messages;
    sent_[static_cast<int>(kind)].bytes += bytes;
  }

 private:
  std::array<Traffic, kNumCommKinds> sent_{};
};

}  // namespace penstock::comm
