// Every algorithm of the table executed round by round: the result is right, and steps, messages and bytes are what the
// formulas say.
#include "cost/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <set>

#include "base/file.h"
#include "collective_network.h"
#include "paths.h"

namespace penstock::cost {
namespace {

constexpr int64_t kMaxRanks = 17;

bool IsPowerOfTwo(int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); }

// A value that says which rank and element it is; sums of them are right only if every rank is in them once.
int64_t Leaf(int64_t rank, int64_t element) { return (element + 1) << (2 * rank); }
int64_t SumOfLeaves(int64_t ranks, int64_t element) {
  int64_t sum = 0;
  for (int64_t r = 0; r < ranks; ++r) sum += Leaf(r, element);
  return sum;
}

// One execution: `elements` divides evenly into what the algorithm cuts.
struct Execution {
  Network net;
  int64_t n, elements, block;
  int64_t inside = 1, micro_batches = 0;
  Execution(int64_t ranks, int64_t size) : net(ranks, size), n(ranks), elements(size), block(size / ranks) {}

  void FillSums() {
    for (int64_t r = 0; r < n; ++r)
      for (int64_t e = 0; e < elements; ++e) net.data[r][e] = Leaf(r, e);
  }
  void FillOwnBlock() {
    for (int64_t r = 0; r < n; ++r)
      for (int64_t e = r * block; e < (r + 1) * block; ++e) net.data[r][e] = e + 1;
  }
  void ExpectSums(int64_t rank, int64_t lo, int64_t hi) const {
    for (int64_t e = lo; e < hi; ++e) ASSERT_EQ(net.data[rank][e], SumOfLeaves(n, e)) << rank << " " << e;
  }
  void ExpectAllSums() const {
    for (int64_t r = 0; r < n; ++r) ExpectSums(r, 0, elements);
  }
  void ExpectWhole(int64_t rank) const {
    for (int64_t e = 0; e < elements; ++e) ASSERT_EQ(net.data[rank][e], e + 1) << rank << " " << e;
  }
  int64_t mod(int64_t r) const { return ((r % n) + n) % n; }
};

// Rings over ranks first, first + stride, ...; `count` of them, chunks of `size` elements from `base`. Several rings
// run side by side when a round is ended by the caller, so `step` is explicit.
void RingStep(Network& net, int64_t first, int64_t stride, int64_t count, int64_t base, int64_t size, int64_t step,
              bool add, int64_t owner_shift) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t chunk = ((i + owner_shift - step) % count + count) % count;
    net.Range(first + i * stride, first + (i + 1) % count * stride, base + chunk * size, base + (chunk + 1) * size,
              add);
  }
}

// Afterwards rank i owns chunk i.
void RingReduceScatter(Execution& x) {
  for (int64_t t = 0; t < x.n - 1; ++t) {
    RingStep(x.net, 0, 1, x.n, 0, x.block, t, true, -1);
    x.net.EndRound();
  }
}
void RingAllGather(Execution& x) {
  for (int64_t t = 0; t < x.n - 1; ++t) {
    RingStep(x.net, 0, 1, x.n, 0, x.block, t, false, 0);
    x.net.EndRound();
  }
}

void DirectReduceScatter(Execution& x) {
  for (int64_t r = 0; r < x.n; ++r)
    for (int64_t o = 0; o < x.n; ++o)
      if (o != r) x.net.Range(r, o, o * x.block, (o + 1) * x.block, true);
  x.net.EndRound();
}
void DirectAllGather(Execution& x) {
  for (int64_t r = 0; r < x.n; ++r)
    for (int64_t o = 0; o < x.n; ++o)
      if (o != r) x.net.Range(r, o, r * x.block, (r + 1) * x.block, false);
  x.net.EndRound();
}

// Ranks 0 .. core-1 halve their range with partners at distance core/2, core/4, ...; rank r ends with range r.
void RecursiveHalving(Execution& x, int64_t core) {
  std::vector<int64_t> lo(core, 0), hi(core, x.elements);
  for (int64_t mask = core / 2; mask > 0; mask /= 2) {
    for (int64_t r = 0; r < core; ++r) {
      const int64_t mid = (lo[r] + hi[r]) / 2;
      const bool upper = (r & mask) != 0;
      x.net.Range(r, r ^ mask, upper ? lo[r] : mid, upper ? mid : hi[r], true);
      (upper ? lo[r] : hi[r]) = mid;
    }
    x.net.EndRound();
  }
}
void RecursiveDoublingGather(Execution& x, int64_t core) {
  const int64_t size = x.elements / core;
  for (int64_t mask = 1; mask < core; mask *= 2) {
    for (int64_t r = 0; r < core; ++r) {
      const int64_t first = r & ~(mask - 1);
      x.net.Range(r, r ^ mask, first * size, (first + mask) * size, false);
    }
    x.net.EndRound();
  }
}

int64_t Core(int64_t n) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n))); }
void FoldIn(Execution& x) {
  for (int64_t r = Core(x.n); r < x.n; ++r) x.net.Range(r, r - Core(x.n), 0, x.elements, true);
  x.net.EndRound();
}
void FoldOut(Execution& x) {
  for (int64_t r = Core(x.n); r < x.n; ++r) x.net.Range(r - Core(x.n), r, 0, x.elements, false);
  x.net.EndRound();
}

void BinomialBroadcast(Execution& x) {
  for (int64_t mask = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x.n))) / 2; mask > 0; mask /= 2) {
    for (int64_t r = 0; r + mask < x.n; r += 2 * mask) x.net.Range(r, r + mask, 0, x.elements, false);
    x.net.EndRound();
  }
}

// Maximal nodes of the canonical tree inside [lo, hi), by walking it.
int64_t NodesIn(int64_t lo, int64_t hi, int64_t node_lo, int64_t node_hi) {
  if (node_lo >= hi || node_hi <= lo) return 0;
  if (node_lo >= lo && node_hi <= hi) return 1;
  const int64_t mid = node_lo + (node_hi - node_lo + 1) / 2;
  return NodesIn(lo, hi, node_lo, mid) + NodesIn(lo, hi, mid, node_hi);
}

// Rank r holds k_r partial sums of the whole tensor and sends, per owner, its slice of each of them in one message.
void CanonicalReduceScatter(Execution& x) {
  const int64_t leaves = x.micro_batches > 0 ? x.micro_batches : x.n;
  Network wide(x.n, x.elements * leaves);  // place [node][element]; node 0 of the owner collects
  std::vector<int64_t> nodes;
  int64_t first = 0;
  for (int64_t r = 0; r < x.n; ++r) {
    const int64_t mine = leaves / x.n + (r < leaves % x.n ? 1 : 0);
    nodes.push_back(mine == 0 ? 0 : NodesIn(first, first + mine, 0, leaves));
    first += mine;
    for (int64_t e = 0; e < x.elements; ++e) {
      // The partial sums of rank r add up to its leaf.
      for (int64_t k = 0; k < nodes[r]; ++k) wide.data[r][k * x.elements + e] = k == 0 ? Leaf(r, e) : 0;
    }
  }
  for (int64_t r = 0; r < x.n; ++r)
    for (int64_t o = 0; o < x.n; ++o) {
      if (o == r) continue;
      Network::Message m{r, o, {}, {}, true};
      for (int64_t k = 0; k < nodes[r]; ++k)
        for (int64_t e = o * x.block; e < (o + 1) * x.block; ++e) {
          m.from.push_back(k * x.elements + e);
          m.to.push_back(e);
        }
      wide.Post(std::move(m));
    }
  wide.EndRound();
  for (int64_t r = 0; r < x.n; ++r) {
    wide.data[r].resize(x.elements);
    if (nodes[r] == 0) x.net.data[r].assign(x.elements, 0);
  }
  x.net = wide;
}

void ExpectOwnSums(const Execution& x) {
  for (int64_t r = 0; r < x.n; ++r) x.ExpectSums(r, r * x.block, (r + 1) * x.block);
}
void ExpectAllWhole(const Execution& x) {
  for (int64_t r = 0; r < x.n; ++r) x.ExpectWhole(r);
}

// Element e of block d of rank r goes to block r of rank d. Executed in a second half of the elements.
void FillExchange(Execution& x) {
  for (int64_t r = 0; r < x.n; ++r)
    for (int64_t d = 0; d < x.n; ++d)
      for (int64_t e = 0; e < x.block; ++e) x.net.data[r][d * x.block + e] = 1000000 * r + 1000 * d + e;
}
void ExpectExchanged(const Execution& x, const std::vector<Network::Elements>& result) {
  for (int64_t r = 0; r < x.n; ++r)
    for (int64_t s = 0; s < x.n; ++s)
      for (int64_t e = 0; e < x.block; ++e) ASSERT_EQ(result[r][s * x.block + e], 1000000 * s + 1000 * r + e);
}
Network::Message BlockTo(const Execution& x, int64_t r, int64_t d, int64_t place) {
  Network::Message m{r, d, {}, {}, false};
  for (int64_t e = 0; e < x.block; ++e) {
    m.from.push_back(d * x.block + e);
    m.to.push_back(x.elements + place * x.block + e);
  }
  return m;
}
void Exchange(Execution& x, bool pairwise) {
  FillExchange(x);
  for (int64_t r = 0; r < x.n; ++r) {
    x.net.data[r].resize(2 * x.elements);
    std::copy_n(x.net.data[r].begin() + r * x.block, x.block, x.net.data[r].begin() + x.elements + r * x.block);
  }
  for (int64_t t = 1; t < x.n; ++t) {
    for (int64_t r = 0; r < x.n; ++r) x.net.Post(BlockTo(x, r, x.mod(r + t), r));
    if (pairwise) x.net.EndRound();
  }
  x.net.EndRound();
  std::vector<Network::Elements> result;
  for (const auto& d : x.net.data) result.emplace_back(d.begin() + x.elements, d.end());
  ExpectExchanged(x, result);
}
void BruckExchange(Execution& x) {
  FillExchange(x);
  // Slot i holds what still has to travel i ranks further (mod n): rotate, hop by bits, rotate back.
  for (int64_t r = 0; r < x.n; ++r)
    std::rotate(x.net.data[r].begin(), x.net.data[r].begin() + r * x.block, x.net.data[r].end());
  for (int64_t bit = 1; bit < x.n; bit *= 2) {
    for (int64_t r = 0; r < x.n; ++r) {
      Network::Message m{r, x.mod(r + bit), {}, {}, false};
      for (int64_t i = 0; i < x.n; ++i)
        if ((i & bit) != 0)
          for (int64_t e = i * x.block; e < (i + 1) * x.block; ++e) m.from.push_back(e);
      m.to = m.from;
      x.net.Post(std::move(m));
    }
    x.net.EndRound();
  }
  std::vector<Network::Elements> result(x.n, Network::Elements(x.elements));
  for (int64_t r = 0; r < x.n; ++r)
    for (int64_t i = 0; i < x.n; ++i)
      std::copy_n(x.net.data[r].begin() + i * x.block, x.block, result[r].begin() + x.mod(r - i) * x.block);
  ExpectExchanged(x, result);
}

const std::map<std::string, std::function<void(Execution&)>>& Executions() {
  static const std::map<std::string, std::function<void(Execution&)>> all = {
      {"all_reduce.ring",
       [](Execution& x) {
         x.FillSums();
         RingReduceScatter(x);
         RingAllGather(x);
         x.ExpectAllSums();
       }},
      {"all_reduce.direct",
       [](Execution& x) {
         x.FillSums();
         DirectReduceScatter(x);
         DirectAllGather(x);
         x.ExpectAllSums();
       }},
      {"all_reduce.canonical_tree",
       [](Execution& x) {
         x.FillSums();
         CanonicalReduceScatter(x);
         DirectAllGather(x);
         if (x.micro_batches == 0 || x.micro_batches >= x.n) x.ExpectAllSums();
       }},
      {"all_reduce.recursive_doubling",
       [](Execution& x) {
         x.FillSums();
         FoldIn(x);
         for (int64_t mask = 1; mask < Core(x.n); mask *= 2) {
           for (int64_t r = 0; r < Core(x.n); ++r) x.net.Range(r, r ^ mask, 0, x.elements, true);
           x.net.EndRound();
         }
         FoldOut(x);
         x.ExpectAllSums();
       }},
      {"all_reduce.halving_doubling",
       [](Execution& x) {
         x.FillSums();
         FoldIn(x);
         RecursiveHalving(x, Core(x.n));
         RecursiveDoublingGather(x, Core(x.n));
         FoldOut(x);
         x.ExpectAllSums();
       }},
      {"all_reduce.tree",
       [](Execution& x) {
         x.FillSums();
         for (int64_t mask = 1; mask < x.n; mask *= 2) {
           for (int64_t r = mask; r < x.n; r += 2 * mask) x.net.Range(r, r - mask, 0, x.elements, true);
           x.net.EndRound();
         }
         BinomialBroadcast(x);
         x.ExpectAllSums();
       }},
      {"all_reduce.hierarchical",
       [](Execution& x) {
         x.FillSums();
         const int64_t g = x.inside, groups = x.n / g, shard = x.elements / g;
         for (int64_t t = 0; t < g - 1; ++t) {
           for (int64_t q = 0; q < groups; ++q) RingStep(x.net, q * g, 1, g, 0, shard, t, true, -1);
           x.net.EndRound(g);
         }
         for (const bool add : {true, false})
           for (int64_t t = 0; t < groups - 1; ++t) {
             for (int64_t i = 0; i < g; ++i)
               RingStep(x.net, i, g, groups, i * shard, shard / groups, t, add, add ? -1 : 0);
             x.net.EndRound(g);
           }
         for (int64_t t = 0; t < g - 1; ++t) {
           for (int64_t q = 0; q < groups; ++q) RingStep(x.net, q * g, 1, g, 0, shard, t, false, 0);
           x.net.EndRound(g);
         }
         x.ExpectAllSums();
       }},
      {"reduce_scatter.ring",
       [](Execution& x) {
         x.FillSums();
         RingReduceScatter(x);
         ExpectOwnSums(x);
       }},
      {"reduce_scatter.direct",
       [](Execution& x) {
         x.FillSums();
         DirectReduceScatter(x);
         ExpectOwnSums(x);
       }},
      {"reduce_scatter.canonical_tree",
       [](Execution& x) {
         x.FillSums();
         CanonicalReduceScatter(x);
         if (x.micro_batches == 0 || x.micro_batches >= x.n) ExpectOwnSums(x);
       }},
      {"reduce_scatter.recursive_halving",
       [](Execution& x) {
         x.FillSums();
         RecursiveHalving(x, x.n);
         ExpectOwnSums(x);
       }},
      {"all_gather.ring",
       [](Execution& x) {
         x.FillOwnBlock();
         RingAllGather(x);
         ExpectAllWhole(x);
       }},
      {"all_gather.direct",
       [](Execution& x) {
         x.FillOwnBlock();
         DirectAllGather(x);
         ExpectAllWhole(x);
       }},
      {"all_gather.recursive_doubling",
       [](Execution& x) {
         x.FillOwnBlock();
         RecursiveDoublingGather(x, x.n);
         ExpectAllWhole(x);
       }},
      {"all_gather.bruck",
       [](Execution& x) {
         x.FillOwnBlock();
         for (int64_t have = 1; have < x.n; have *= 2) {
           for (int64_t r = 0; r < x.n; ++r) {
             Network::Message m{r, x.mod(r - have), {}, {}, false};
             for (int64_t i = 0; i < std::min(have, x.n - have); ++i)
               for (int64_t e = 0; e < x.block; ++e) m.from.push_back(x.mod(r + i) * x.block + e);
             m.to = m.from;
             x.net.Post(std::move(m));
           }
           x.net.EndRound();
         }
         ExpectAllWhole(x);
       }},
      {"all_to_all.direct", [](Execution& x) { Exchange(x, false); }},
      {"all_to_all.pairwise", [](Execution& x) { Exchange(x, true); }},
      {"all_to_all.bruck", &BruckExchange},
      {"broadcast.direct",
       [](Execution& x) {
         for (int64_t e = 0; e < x.elements; ++e) x.net.data[0][e] = e + 1;
         for (int64_t r = 1; r < x.n; ++r) x.net.Range(0, r, 0, x.elements, false);
         x.net.EndRound();
         ExpectAllWhole(x);
       }},
      {"broadcast.binomial",
       [](Execution& x) {
         for (int64_t e = 0; e < x.elements; ++e) x.net.data[0][e] = e + 1;
         BinomialBroadcast(x);
         ExpectAllWhole(x);
       }},
      {"broadcast.scatter_all_gather",
       [](Execution& x) {
         for (int64_t e = 0; e < x.elements; ++e) x.net.data[0][e] = e + 1;
         for (int64_t mask = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x.n))) / 2; mask > 0; mask /= 2) {
           for (int64_t r = 0; r + mask < x.n; r += 2 * mask)
             x.net.Range(r, r + mask, (r + mask) * x.block, std::min(r + 2 * mask, x.n) * x.block, false);
           x.net.EndRound();
         }
         RingAllGather(x);
         ExpectAllWhole(x);
       }},
      {"gather.direct",
       [](Execution& x) {
         x.FillOwnBlock();
         for (int64_t r = 1; r < x.n; ++r) x.net.Range(r, 0, r * x.block, (r + 1) * x.block, false);
         x.net.EndRound();
         x.ExpectWhole(0);
       }},
      {"gather.binomial",
       [](Execution& x) {
         x.FillOwnBlock();
         for (int64_t mask = 1; mask < x.n; mask *= 2) {
           for (int64_t r = mask; r < x.n; r += 2 * mask)
             x.net.Range(r, r - mask, r * x.block, std::min(r + mask, x.n) * x.block, false);
           x.net.EndRound();
         }
         x.ExpectWhole(0);
       }},
      {"send.direct",
       [](Execution& x) {
         if (x.n == 1) return;
         for (int64_t e = 0; e < x.elements; ++e) x.net.data[0][e] = e + 1;
         x.net.Range(0, 1, 0, x.elements, false);
         x.net.EndRound();
         x.ExpectWhole(1);
       }},
  };
  return all;
}

void Compare(const std::string& name, int64_t n, int64_t inside, int64_t micro_batches) {
  SCOPED_TRACE(fmt::format("{} n={} inside={} micro_batches={}", name, n, inside, micro_batches));
  Execution x(n, n * Core(n));
  x.inside = inside;
  x.micro_batches = micro_batches;
  Executions().at(name)(x);
  const CollectiveCount c = CountCollective(name, {n, static_cast<double>(x.elements), inside, micro_batches});
  EXPECT_EQ(c.steps, x.net.steps);
  EXPECT_EQ(c.messages, x.net.most_messages());
  EXPECT_EQ(c.bytes, static_cast<double>(x.net.most_bytes()));
  EXPECT_EQ(c.total_messages, x.net.total_messages());
  EXPECT_EQ(c.total_bytes, static_cast<double>(x.net.total_bytes()));
  EXPECT_EQ(c.serial_bytes, static_cast<double>(x.net.serial));
  EXPECT_EQ(c.between_steps, x.net.between_steps);
  EXPECT_EQ(c.between_bytes, static_cast<double>(x.net.between_bytes));
}

TEST(Collectives, FormulasAreWhatAnExecutionCounts) {
  std::set<std::string> executed;
  for (const auto& [name, entry] : Registry<CollectiveAlgorithm>::All()) {
    ASSERT_TRUE(Executions().count(name)) << name << " has no execution in this test";
    EXPECT_EQ(name.substr(0, name.find('.')), Name(entry.kind));
    for (int64_t n = 1; n <= kMaxRanks; ++n) {
      if (!TakesCase(entry, {.ranks = n})) {
        EXPECT_TRUE((entry.power_of_two && !IsPowerOfTwo(n)) || (entry.kind == CollectiveKind::send && n > 2)) << name;
        EXPECT_THROW(CountCollective(name, {.ranks = n}), UserError) << name << n;
        continue;
      }
      for (int64_t inside = 1; inside <= (name == "all_reduce.hierarchical" ? n : 1); ++inside)
        if (n % inside == 0) Compare(name, n, inside, 0);
      if (name.ends_with("canonical_tree"))
        for (const int64_t m : {n, 2 * n, 3 * n, 2 * n + 1, n + n / 2}) Compare(name, n, 1, m);
      executed.insert(name);
    }
  }
  EXPECT_EQ(executed.size(), Executions().size());
}

TEST(Collectives, SecondsAreLatencyTimesStepsPlusBytesOverBandwidth) {
  const CollectiveCount ring = CountCollective("all_reduce.ring", {.ranks = 4, .bytes = 4000});
  EXPECT_DOUBLE_EQ(CollectiveSeconds(ring, {0.5, 1000}), 6 * 0.5 + 6.0);
  EXPECT_DOUBLE_EQ(CollectiveSeconds(ring, {0.5, 0}), 3.0);
  // Two groups of two: 2 rounds inside with 2000 bytes, 2 rounds between with 1000 bytes each.
  const CollectiveCount two = CountCollective("all_reduce.hierarchical", {.ranks = 4, .bytes = 4000, .inside = 2});
  EXPECT_DOUBLE_EQ(CollectiveSeconds(two, {0.5, 1000}, {2, 100}), 2 * 0.5 + 4.0 + 2 * 2 + 20.0);
  EXPECT_EQ(CollectiveSeconds(CountCollective("all_reduce.ring", {.ranks = 1, .bytes = 1e9}), {1, 1}), 0);
}

TEST(Collectives, QuickestFollowsTheSize) {
  const AlphaBeta link{1e-3, 1e9};
  EXPECT_EQ(QuickestCollective(CollectiveKind::broadcast, {.ranks = 16, .bytes = 8}, link), "broadcast.direct");
  EXPECT_EQ(QuickestCollective(CollectiveKind::broadcast, {.ranks = 16, .bytes = 5e5}, link), "broadcast.binomial");
  EXPECT_EQ(QuickestCollective(CollectiveKind::broadcast, {.ranks = 16, .bytes = 1e12}, link),
            "broadcast.scatter_all_gather");
  EXPECT_EQ(QuickestCollective(CollectiveKind::all_reduce, {.ranks = 8, .bytes = 1e6}, link), "all_reduce.direct");
  EXPECT_THROW(QuickestCollective(CollectiveKind::send, {.ranks = 3, .bytes = 1}, link), UserError);
}

TEST(Collectives, RefusesRanksItDoesNotTake) {
  EXPECT_THROW(CountCollective("all_gather.recursive_doubling", {.ranks = 6, .bytes = 6}), UserError);
  EXPECT_THROW(CountCollective("all_reduce.hierarchical", {.ranks = 6, .bytes = 6, .inside = 4}), UserError);
  EXPECT_THROW(CountCollective("all_reduce.rings", {.ranks = 6, .bytes = 6}), UserError);
}

// docs/collectives.md has exactly the rows of the table.
TEST(Collectives, DocumentHasExactlyOneRowPerEntry) {
  const std::string text = ReadFile(SourceFolder() + "/docs/collectives.md");
  std::string rows;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (line.starts_with("| `")) rows += line + "\n";
    at = end + 1;
  }
  EXPECT_EQ(rows, CollectiveTable());
}

}  // namespace
}  // namespace penstock::cost
