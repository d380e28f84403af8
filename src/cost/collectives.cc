#include "cost/collectives.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include "base/tree.h"

namespace penstock::cost {
namespace {

using Kind = CollectiveKind;

int64_t FloorLog2(int64_t n) { return std::bit_width(static_cast<uint64_t>(n)) - 1; }
int64_t CeilLog2(int64_t n) { return std::bit_width(static_cast<uint64_t>(n - 1)); }

// Every rank does the same: `steps` messages, `bytes` in all.
CollectiveCount Symmetric(int64_t n, int64_t steps, double bytes) {
  return {.steps = steps,
          .messages = steps,
          .bytes = bytes,
          .total_messages = n * steps,
          .total_bytes = static_cast<double>(n) * bytes,
          .serial_bytes = bytes};
}

// All messages of a rank leave in one round.
CollectiveCount OneRound(int64_t n, int64_t rounds, double bytes_per_round) {
  CollectiveCount c = Symmetric(n, rounds, static_cast<double>(rounds) * bytes_per_round);
  c.messages = rounds * (n - 1);
  c.total_messages = n * c.messages;
  return c;
}

double OthersBlocks(const CollectiveCase& c) {
  return static_cast<double>(c.ranks - 1) * (c.bytes / static_cast<double>(c.ranks));
}

// Ranks beyond the largest power of two hand their data to a partner first and receive the result last.
struct Fold {
  explicit Fold(int64_t n) : k(FloorLog2(n)), core(int64_t{1} << k), rest(n - core), extra(rest > 0 ? 1 : 0) {}
  int64_t k, core, rest, extra;
};

CollectiveCount RecursiveDoublingAllReduce(const CollectiveCase& c) {
  const Fold f(c.ranks);
  return {.steps = f.k + 2 * f.extra,
          .messages = f.k + f.extra,
          .bytes = static_cast<double>(f.k + f.extra) * c.bytes,
          .total_messages = f.core * f.k + 2 * f.rest,
          .total_bytes = static_cast<double>(f.core * f.k + 2 * f.rest) * c.bytes,
          .serial_bytes = static_cast<double>(f.k + 2 * f.extra) * c.bytes};
}

CollectiveCount HalvingDoublingAllReduce(const CollectiveCase& c) {
  const Fold f(c.ranks);
  const double halves = 2 * static_cast<double>(f.core - 1) * (c.bytes / static_cast<double>(f.core));
  return {.steps = 2 * f.k + 2 * f.extra,
          .messages = 2 * f.k + f.extra,
          .bytes = halves + static_cast<double>(f.extra) * c.bytes,
          .total_messages = 2 * f.core * f.k + 2 * f.rest,
          .total_bytes = 2 * static_cast<double>(c.ranks - 1) * c.bytes,
          .serial_bytes = halves + 2 * static_cast<double>(f.extra) * c.bytes};
}

CollectiveCount TreeAllReduce(const CollectiveCase& c) {
  const int64_t levels = CeilLog2(c.ranks);
  return {.steps = 2 * levels,
          .messages = levels,
          .bytes = static_cast<double>(levels) * c.bytes,
          .total_messages = 2 * (c.ranks - 1),
          .total_bytes = static_cast<double>(2 * (c.ranks - 1)) * c.bytes,
          .serial_bytes = static_cast<double>(2 * levels) * c.bytes};
}

CollectiveCount HierarchicalAllReduce(const CollectiveCase& c) {
  const int64_t inside = c.inside, between = c.ranks / c.inside;
  const double shard = c.bytes / static_cast<double>(inside);
  const double crossing = 2 * static_cast<double>(between - 1) * (shard / static_cast<double>(between));
  CollectiveCount count =
      Symmetric(c.ranks, 2 * (inside - 1) + 2 * (between - 1), 2 * static_cast<double>(inside - 1) * shard + crossing);
  count.between_steps = 2 * (between - 1);
  count.between_bytes = crossing;
  return count;
}

// Partial sums that every rank brings: contiguous runs of the micro-batches, larger runs first.
std::vector<int64_t> TreeNodesOfRanks(const CollectiveCase& c) {
  const int64_t leaves = c.micro_batches > 0 ? c.micro_batches : c.ranks;
  std::vector<int64_t> nodes;
  int64_t first = 0;
  for (int64_t r = 0; r < c.ranks; ++r) {
    std::vector<int32_t> mine(static_cast<size_t>(leaves / c.ranks + (r < leaves % c.ranks ? 1 : 0)));
    std::iota(mine.begin(), mine.end(), static_cast<int32_t>(first));
    first += static_cast<int64_t>(mine.size());
    nodes.push_back(static_cast<int64_t>(MaximalNodes(mine, static_cast<int32_t>(leaves)).size()));
  }
  return nodes;
}

CollectiveCount CanonicalReduceScatter(const CollectiveCase& c) {
  const std::vector<int64_t> nodes = TreeNodesOfRanks(c);
  const int64_t sum = std::accumulate(nodes.begin(), nodes.end(), int64_t{0});
  const int64_t most = *std::max_element(nodes.begin(), nodes.end());
  const int64_t fewest = *std::min_element(nodes.begin(), nodes.end());
  const auto senders = std::count_if(nodes.begin(), nodes.end(), [](int64_t k) { return k > 0; });
  const double block = c.bytes / static_cast<double>(c.ranks);
  return {.steps = 1,
          .messages = c.ranks - 1,
          .bytes = static_cast<double>(most * (c.ranks - 1)) * block,
          .total_messages = senders * (c.ranks - 1),
          .total_bytes = static_cast<double>(sum * (c.ranks - 1)) * block,
          // The owner that brings fewest nodes receives most.
          .serial_bytes = static_cast<double>(std::max(most * (c.ranks - 1), sum - fewest)) * block};
}

CollectiveCount CanonicalAllReduce(const CollectiveCase& c) {
  CollectiveCount count = CanonicalReduceScatter(c);
  const double gathered = OthersBlocks(c);
  count.steps += 1;
  count.messages += c.ranks - 1;
  count.bytes += gathered;
  count.total_messages += c.ranks * (c.ranks - 1);
  count.total_bytes += static_cast<double>(c.ranks) * gathered;
  count.serial_bytes += gathered;
  return count;
}

CollectiveCount BruckAllToAll(const CollectiveCase& c) {
  int64_t blocks = 0;  // with bit k of their distance set, over all k
  for (int64_t i = 1; i < c.ranks; ++i) blocks += std::popcount(static_cast<uint64_t>(i));
  return Symmetric(c.ranks, CeilLog2(c.ranks), static_cast<double>(blocks) * (c.bytes / static_cast<double>(c.ranks)));
}

// Binomial trees with a part of the data per rank: rank r carries the blocks of its subtree once.
struct Subtrees {
  explicit Subtrees(int64_t n) {
    for (int64_t r = 1; r < n; ++r) {
      const int64_t blocks = std::min(r & -r, n - r);
      total += blocks;
      largest = std::max(largest, blocks);
    }
  }
  int64_t total = 0, largest = 0;
};

CollectiveCount BinomialBroadcast(const CollectiveCase& c) {
  const int64_t levels = CeilLog2(c.ranks);
  return {.steps = levels,
          .messages = levels,
          .bytes = static_cast<double>(levels) * c.bytes,
          .total_messages = c.ranks - 1,
          .total_bytes = static_cast<double>(c.ranks - 1) * c.bytes,
          .serial_bytes = static_cast<double>(levels) * c.bytes};
}

CollectiveCount ScatterAllGatherBroadcast(const CollectiveCase& c) {
  CollectiveCount count = Symmetric(c.ranks, c.ranks - 1, OthersBlocks(c));
  count.steps += CeilLog2(c.ranks);
  count.messages += CeilLog2(c.ranks);
  count.bytes *= 2;
  count.total_messages += c.ranks - 1;
  count.total_bytes += static_cast<double>(Subtrees(c.ranks).total) * (c.bytes / static_cast<double>(c.ranks));
  count.serial_bytes *= 2;
  return count;
}

CollectiveCount DirectBroadcast(const CollectiveCase& c) {
  const double all = static_cast<double>(c.ranks - 1) * c.bytes;
  return {.steps = 1,
          .messages = c.ranks - 1,
          .bytes = all,
          .total_messages = c.ranks - 1,
          .total_bytes = all,
          .serial_bytes = all};
}

CollectiveCount BinomialGather(const CollectiveCase& c) {
  const Subtrees trees(c.ranks);
  const double block = c.bytes / static_cast<double>(c.ranks);
  return {.steps = CeilLog2(c.ranks),
          .messages = 1,
          .bytes = static_cast<double>(trees.largest) * block,
          .total_messages = c.ranks - 1,
          .total_bytes = static_cast<double>(trees.total) * block,
          .serial_bytes = OthersBlocks(c)};
}

CollectiveCount DirectGather(const CollectiveCase& c) {
  return {.steps = 1,
          .messages = 1,
          .bytes = c.bytes / static_cast<double>(c.ranks),
          .total_messages = c.ranks - 1,
          .total_bytes = OthersBlocks(c),
          .serial_bytes = OthersBlocks(c)};
}

CollectiveCount Ring(const CollectiveCase& c) { return Symmetric(c.ranks, c.ranks - 1, OthersBlocks(c)); }
CollectiveCount Logarithmic(const CollectiveCase& c) { return Symmetric(c.ranks, CeilLog2(c.ranks), OthersBlocks(c)); }
CollectiveCount Direct(const CollectiveCase& c) { return OneRound(c.ranks, 1, OthersBlocks(c)); }

constexpr const char* kThakur = "Thakur et al. 2005";
constexpr const char* kChan = "Chan et al. 2007";
constexpr const char* kBruck = "Bruck et al. 1997";
constexpr const char* kComm = "`comm/traffic.h`";

const RegisterCollective kEntries[] = {
    RegisterCollective{{"all_reduce.canonical_tree", Kind::all_reduce, "2", "2(n-1)", "(k+1)(n-1)/n B, k tree nodes",
                        "any", kComm, false, &CanonicalAllReduce}},
    RegisterCollective{{"all_reduce.direct", Kind::all_reduce, "2", "2(n-1)", "2(n-1)/n B", "any", kComm, false,
                        [](const CollectiveCase& c) { return OneRound(c.ranks, 2, OthersBlocks(c)); }}},
    RegisterCollective{{"all_reduce.halving_doubling", Kind::all_reduce, "2k + 2[n>p], p = 2^k <= n < 2p", "2k + [n>p]",
                        "2(p-1)/p B + [n>p] B", "any", kThakur, false, &HalvingDoublingAllReduce}},
    RegisterCollective{{"all_reduce.hierarchical", Kind::all_reduce, "2(g-1) inside, 2(n/g-1) between",
                        "2(g-1) + 2(n/g-1)", "2(g-1)/g B inside, 2(n/g-1)/n B between", "multiple of g", kChan, false,
                        &HierarchicalAllReduce}},
    RegisterCollective{{"all_reduce.recursive_doubling", Kind::all_reduce, "k + 2[n>p], p = 2^k <= n < 2p", "k + [n>p]",
                        "(k + [n>p]) B", "any", kThakur, false, &RecursiveDoublingAllReduce}},
    RegisterCollective{
        {"all_reduce.ring", Kind::all_reduce, "2(n-1)", "2(n-1)", "2(n-1)/n B", "any", kThakur, false,
         [](const CollectiveCase& c) { return Symmetric(c.ranks, 2 * (c.ranks - 1), 2 * OthersBlocks(c)); }}},
    RegisterCollective{{"all_reduce.tree", Kind::all_reduce, "2 ceil(log2 n)", "ceil(log2 n)", "ceil(log2 n) B", "any",
                        kChan, false, &TreeAllReduce}},
    RegisterCollective{{"reduce_scatter.canonical_tree", Kind::reduce_scatter, "1", "n-1", "k(n-1)/n B, k tree nodes",
                        "any", kComm, false, &CanonicalReduceScatter}},
    RegisterCollective{
        {"reduce_scatter.direct", Kind::reduce_scatter, "1", "n-1", "(n-1)/n B", "any", kComm, false, &Direct}},
    RegisterCollective{{"reduce_scatter.recursive_halving", Kind::reduce_scatter, "log2 n", "log2 n", "(n-1)/n B",
                        "power of two", kThakur, true, &Logarithmic}},
    RegisterCollective{
        {"reduce_scatter.ring", Kind::reduce_scatter, "n-1", "n-1", "(n-1)/n B", "any", kThakur, false, &Ring}},
    RegisterCollective{{"all_gather.bruck", Kind::all_gather, "ceil(log2 n)", "ceil(log2 n)", "(n-1)/n B", "any",
                        kBruck, false, &Logarithmic}},
    RegisterCollective{{"all_gather.direct", Kind::all_gather, "1", "n-1", "(n-1)/n B", "any", kComm, false, &Direct}},
    RegisterCollective{{"all_gather.recursive_doubling", Kind::all_gather, "log2 n", "log2 n", "(n-1)/n B",
                        "power of two", kThakur, true, &Logarithmic}},
    RegisterCollective{{"all_gather.ring", Kind::all_gather, "n-1", "n-1", "(n-1)/n B", "any", kThakur, false, &Ring}},
    RegisterCollective{{"all_to_all.bruck", Kind::all_to_all, "ceil(log2 n)", "ceil(log2 n)",
                        "popcounts of 1..n-1, summed, / n B", "any", kBruck, false, &BruckAllToAll}},
    RegisterCollective{{"all_to_all.direct", Kind::all_to_all, "1", "n-1", "(n-1)/n B", "any", kComm, false, &Direct}},
    RegisterCollective{
        {"all_to_all.pairwise", Kind::all_to_all, "n-1", "n-1", "(n-1)/n B", "any", kThakur, false, &Ring}},
    RegisterCollective{{"broadcast.binomial", Kind::broadcast, "ceil(log2 n)", "ceil(log2 n)", "ceil(log2 n) B", "any",
                        kThakur, false, &BinomialBroadcast}},
    RegisterCollective{
        {"broadcast.direct", Kind::broadcast, "1", "n-1", "(n-1) B", "any", kComm, false, &DirectBroadcast}},
    RegisterCollective{{"broadcast.scatter_all_gather", Kind::broadcast, "ceil(log2 n) + n-1", "ceil(log2 n) + n-1",
                        "2(n-1)/n B", "any", kThakur, false, &ScatterAllGatherBroadcast}},
    RegisterCollective{{"gather.binomial", Kind::gather, "ceil(log2 n)", "1", "largest subtree / n B", "any", kChan,
                        false, &BinomialGather}},
    RegisterCollective{{"gather.direct", Kind::gather, "1", "1", "B/n", "any", kChan, false, &DirectGather}},
    RegisterCollective{{"send.direct", Kind::send, "1", "1", "B", "2", kComm, false,
                        [](const CollectiveCase& c) {
                          return CollectiveCount{.steps = 1,
                                                 .messages = 1,
                                                 .bytes = c.bytes,
                                                 .total_messages = 1,
                                                 .total_bytes = c.bytes,
                                                 .serial_bytes = c.bytes};
                        }}},
};

}  // namespace

bool TakesCase(const CollectiveAlgorithm& algorithm, const CollectiveCase& c) {
  if (c.ranks < 1 || c.inside < 1 || c.ranks % c.inside != 0) return false;
  if (algorithm.kind == Kind::send) return c.ranks <= 2;
  return !algorithm.power_of_two || std::has_single_bit(static_cast<uint64_t>(c.ranks));
}

CollectiveCount CountCollective(std::string_view algorithm, const CollectiveCase& c) {
  const CollectiveAlgorithm& entry = Registry<CollectiveAlgorithm>::Find(algorithm);
  if (!TakesCase(entry, c))
    throw UserError("{} does not take {} ranks{}; it takes: {}", entry.name, c.ranks,
                    c.inside > 1 ? fmt::format(" in groups of {}", c.inside) : "", entry.ranks);
  if (c.ranks == 1) return {};
  return entry.count(c);
}

double CollectiveSeconds(const CollectiveCount& count, const AlphaBeta& inside, const AlphaBeta& between) {
  const auto seconds = [](int64_t steps, double bytes, const AlphaBeta& link) {
    return static_cast<double>(steps) * link.latency_seconds +
           (link.bytes_per_second > 0 ? bytes / link.bytes_per_second : 0);
  };
  return seconds(count.steps - count.between_steps, count.serial_bytes - count.between_bytes, inside) +
         seconds(count.between_steps, count.between_bytes, between);
}

double CollectiveSeconds(const CollectiveCount& count, const AlphaBeta& link) {
  return CollectiveSeconds(count, link, link);
}

std::string QuickestCollective(CollectiveKind kind, const CollectiveCase& c, const AlphaBeta& link) {
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [name, entry] : Registry<CollectiveAlgorithm>::All()) {
    if (entry.kind != kind || !TakesCase(entry, c)) continue;
    if (name.ends_with(".hierarchical") || name.ends_with(".canonical_tree")) continue;
    const double seconds = CollectiveSeconds(CountCollective(name, c), link);
    if (seconds >= least) continue;
    least = seconds;
    best = name;
  }
  if (best.empty()) throw UserError("no algorithm of {} takes {} ranks", Name(kind), c.ranks);
  return best;
}

std::string CollectiveRow(const CollectiveAlgorithm& a) {
  return fmt::format("| `{}` | {} | {} | {} | {} | {} |", a.name, a.steps, a.messages, a.bytes, a.ranks, a.source);
}

std::string CollectiveTable() {
  std::string text;
  for (const auto& [name, entry] : Registry<CollectiveAlgorithm>::All()) text += CollectiveRow(entry) + "\n";
  return text;
}

}  // namespace penstock::cost
