// src/cost/collectives.h
//
// What a collective costs by the alpha-beta model, one entry per algorithm: rounds, messages, bytes, and seconds on a
// link. The entries are a registry (names "<collective>.<algorithm>"); docs/collectives.md has a row for each, and a
// test executes every algorithm step by step and counts.
//
// n ranks; B = bytes of the whole tensor: what a rank brings to all_reduce, reduce_scatter and all_to_all, what it has
// after all_gather and broadcast, what the root has after gather. Counts are exact when the blocks divide evenly
// (B/n, and for the halving algorithms B / 2^floor(log2 n)); otherwise they are the even share.
// Sources: Thakur, Rabenseifner, Gropp, IJHPCA 2005; Chan, Heimlich, Purkayastha, van de Geijn, CCPE 2007; Bruck et
// al., IEEE TPDS 1997; comm/traffic.h for what the thread communicator counts.
// Threads: functions only. Errors: UserError when an algorithm does not take a number of ranks.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/registry.h"

namespace penstock::cost {

enum class CollectiveKind : uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, gather, send };
inline constexpr std::array<std::string_view, 7> kCollectiveKindNames = {
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "gather", "send"};
constexpr std::string_view Name(CollectiveKind kind) { return kCollectiveKindNames[static_cast<size_t>(kind)]; }

struct CollectiveCase {
  int64_t ranks = 1;
  double bytes = 0;           // B
  int64_t inside = 1;         // hierarchical: ranks of one group (a node); divides `ranks`
  int64_t micro_batches = 0;  // canonical tree: leaves, contiguous runs per rank; 0: one per rank
};

struct CollectiveCount {
  int64_t steps = 0;           // rounds one after the other; what the latency is paid for
  int64_t messages = 0;        // sent by the rank that sends most messages
  double bytes = 0;            // sent by the rank that sends most bytes
  int64_t total_messages = 0;  // sent by all ranks
  double total_bytes = 0;
  // Sum over the rounds of the most that any rank sends or receives in it: what the bandwidth is paid for. A rank sends
  // and receives at the same time, and the network itself is never the bottleneck.
  double serial_bytes = 0;
  // The part of steps and serial_bytes on the link between groups (hierarchical algorithms; 0 elsewhere).
  int64_t between_steps = 0;
  double between_bytes = 0;
};

struct CollectiveAlgorithm {
  static constexpr const char* kRegistryName = "collective algorithm";
  std::string name;  // "all_reduce.ring"
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string steps, messages, bytes;  // formulas for people: of the rank that sends most
  std::string ranks = "any";           // which n it takes
  std::string source;
  bool power_of_two = false;
  std::function<CollectiveCount(const CollectiveCase&)> count;  // n >= 2
};

using RegisterCollective = Register<CollectiveAlgorithm>;

// All zero for one rank. UserError when the algorithm does not take this case.
CollectiveCount CountCollective(std::string_view algorithm, const CollectiveCase& c);
// Can the algorithm run this case?
bool TakesCase(const CollectiveAlgorithm& algorithm, const CollectiveCase& c);

struct AlphaBeta {
  double latency_seconds = 0;   // of one message
  double bytes_per_second = 0;  // of one rank in one direction; 0: infinite
};

// latency * steps + serial_bytes / bandwidth, all on one link.
double CollectiveSeconds(const CollectiveCount& count, const AlphaBeta& link);
// The rounds between groups on `between`, the others on `inside`.
double CollectiveSeconds(const CollectiveCount& count, const AlphaBeta& inside, const AlphaBeta& between);

// The name of the quickest algorithm that takes the case, by seconds on one link (hierarchical and canonical-tree
// algorithms are left out: the first needs two links, the second is chosen for its bits). Ties: the first by name.
std::string QuickestCollective(CollectiveKind kind, const CollectiveCase& c, const AlphaBeta& link);

// What rank r of the canonical-tree collectives of comm sends, to the byte: `nodes` = partial sums it brings
// (MaximalNodes in base/tree.h), `bytes` = whole tensor, `own_bytes` = the shard it owns.
constexpr int64_t CanonicalReduceScatterBytes(int64_t nodes, int64_t bytes, int64_t own_bytes) {
  return nodes * (bytes - own_bytes);
}
constexpr int64_t CanonicalAllReduceBytes(int64_t nodes, int64_t bytes, int64_t own_bytes, int64_t ranks) {
  return CanonicalReduceScatterBytes(nodes, bytes, own_bytes) + (ranks - 1) * own_bytes;
}

// The row of docs/collectives.md, and the rows of all entries in order of name.
std::string CollectiveRow(const CollectiveAlgorithm& algorithm);
std::string CollectiveTable();

}  // namespace penstock::cost
