// tests/schedule/random_schedule.h
//
// Schedules with valid indices and otherwise arbitrary contents, for property tests of what has to work on any of them.
#pragma once

#include <random>
#include <string>

#include "base/registry.h"
#include "schedule/operators.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

class RandomSchedule {
 public:
  explicit RandomSchedule(uint64_t seed) : random_(seed) {}

  Schedule Make() {
    Schedule s;
    s.name = Text();
    const int stages = Int(1, 6), micro_batches = Int(1, 9), pipeline = Int(1, 4), replicas = Int(1, 3);
    const int ranks = pipeline * replicas + (Chance(0.2) ? 1 : 0);
    s.graph = Chance(0.6) ? StageGraph::Chain(stages) : StageGraph(stages, Edges(stages));
    s.ranks.resize(ranks);

    s.route.pipeline_size = pipeline;
    for (int p = 0; p < (Chance(0.8) ? 1 : 3); ++p) s.route.placements.push_back(List<int>(stages, 0, pipeline - 1));
    if (Chance(0.2) && stages == pipeline) s.route.placements[0] = MakePlacement("linear", pipeline, stages);
    s.route.replica_of =
        Chance(0.5) ? ContiguousReplicas(micro_batches, replicas) : List<int32_t>(micro_batches, 0, replicas - 1);
    if (s.route.placements.size() > 1 || Chance(0.1))
      s.route.placement_of = List<uint8_t>(micro_batches, 0, static_cast<int>(s.route.placements.size()) - 1);
    for (int i = Chance(0.2) ? Int(1, 3) : 0; i > 0; --i)
      s.route.overrides[{Int(0, stages - 1), Int(0, micro_batches - 1)}] = Int(0, ranks - 1);

    if (Chance(0.3)) {
      s.contract.coverage = static_cast<CoverageRule>(Int(0, 2));
      s.contract.staleness = Int(0, 5);
      s.contract.equivalence = static_cast<Equivalence>(Int(0, 3));
      if (Chance(0.5)) s.contract.reason = Text();
      for (bool& free : s.contract.deadlock_free) free = Chance(0.5);
    }
    if (Chance(0.9)) s.stage_options.resize(stages);
    for (auto& options : s.stage_options) options.recompute = Chance(0.2);

    for (int g = Int(0, 4); g > 0; --g) {
      std::vector<int32_t> group;
      for (int r = 0; r < ranks; ++r)
        if (Chance(0.5)) group.push_back(r);
      s.groups.push_back(group);
    }
    const int groups = static_cast<int>(s.groups.size());
    for (int u = 0; u < (Chance(0.7) ? stages + Int(0, 2) : 0); ++u) {
      ParameterUnit unit;
      unit.unit = {static_cast<uint8_t>(Chance(0.1) ? Int(0, 255) : 0), static_cast<uint16_t>(u)};
      for (int i = Int(0, 3); i > 0; --i)
        unit.uses.push_back({static_cast<uint16_t>(Int(0, stages - 1)), Int(-1, groups - 1)});
      unit.group = Int(-1, groups - 1);
      if (Chance(0.2)) unit.form = static_cast<BufferForm>(Int(0, 4));
      s.holders.units.push_back(std::move(unit));
    }
    for (int i = Int(0, 3); i > 0; --i)
      s.sizes.push_back({Chance(0.3) ? "same" : Text(), Int(0, 1 << 30) * int64_t{64}});

    for (auto& list : s.ranks)
      for (int i = Int(0, 20); i > 0; --i) list.push_back(RandomAction(s, micro_batches));
    AddEdges(s);
    return s;
  }

  int Int(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool Chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }

 private:
  template <typename T>
  std::vector<T> List(int n, int low, int high) {
    std::vector<T> values(n);
    for (T& v : values) v = static_cast<T>(Int(low, high));
    return values;
  }

  std::string Text() {
    if (Chance(0.5)) return "word-" + std::to_string(Int(0, 9));
    std::string text;
    for (int i = Int(0, 12); i > 0; --i)
      text += static_cast<char>(Chance(0.3) ? Int(-128, 127) : "\"\\# =@,\n\r\t7a"[Int(0, 11)]);
    return text;
  }

  std::vector<StageEdge> Edges(int stages) {
    std::vector<StageEdge> edges;
    for (int a = 0; a < stages; ++a)
      for (int b = a + 1; b < stages; ++b)
        if (Chance(0.4))
          edges.push_back({static_cast<uint16_t>(a), static_cast<uint16_t>(b), Chance(0.5) ? "hidden" : Text()});
    std::shuffle(edges.begin(), edges.end(), random_);
    return edges;
  }

  OpId OperatorOf(Kind kind) {
    std::vector<std::string> names;
    for (const auto& [name, op] : Registry<Operator>::All())
      if (op.kind == (kind == Kind::recv ? Kind::send : kind)) names.push_back(name);
    return names.empty() ? kNoOp : FindOp(names[Int(0, static_cast<int>(names.size()) - 1)]);
  }

  Action RandomAction(const Schedule& s, int micro_batches) {
    Action a;
    do {
      a.key.kind = static_cast<Kind>(Int(0, kKindCount - 1));
      a.key.op = a.key.kind >= Kind::check ? OperatorOf(a.key.kind) : kNoOp;
      const bool message = a.key.kind == Kind::send || a.key.kind == Kind::recv;
      if (a.key.kind >= Kind::check && a.key.op == kNoOp) continue;  // no operator of this kind yet
      if (message && s.graph.edges().empty()) continue;              // nothing to send
      if (a.key.kind == Kind::collective && s.groups.empty() && Chance(0.9)) continue;
      break;
    } while (true);
    const bool message = a.key.kind == Kind::send || a.key.kind == Kind::recv;
    const bool staged = IsComputeKind(a.key.kind) || message;
    const int units = std::max(s.num_stages(), static_cast<int>(s.holders.units.size()));
    a.key.unit.stage = static_cast<uint16_t>(Int(0, (staged ? s.num_stages() : units) - 1));
    if (Chance(0.05)) a.key.unit.component = static_cast<uint8_t>(Int(0, 255));
    a.key.micro_batch = IsComputeKind(a.key.kind) ? Int(0, micro_batches - 1) : Int(-1, micro_batches - 1);
    if (message)
      a.key.part = static_cast<int16_t>(Int(0, static_cast<int>(s.graph.edges().size()) - 1));
    else if (Chance(0.2))
      a.key.part = static_cast<int16_t>(Int(INT16_MIN, INT16_MAX));
    if (Chance(0.1)) a.key.round = static_cast<int8_t>(Int(-128, 127));
    if (Chance(0.1)) a.key.step = static_cast<int8_t>(Int(-128, 127));
    if (a.key.kind == Kind::collective)
      a.peer_or_group = Int(-1, static_cast<int>(s.groups.size()) - 1);
    else if (message || Chance(0.05))
      a.peer_or_group = Int(-1, s.num_ranks() - 1);
    if (Chance(0.1)) a.guard = static_cast<int16_t>(Int(0, INT16_MAX));
    if (Chance(0.3)) a.bytes = static_cast<SizeId>(Int(0, static_cast<int>(s.sizes.size()) - 1));
    a.stream = Chance(0.8) ? DefaultStream(a.key.kind)
                           : static_cast<Stream>(Int(0, static_cast<int>(kStreamNames.size()) - 1));
    return a;
  }

  void AddEdges(Schedule& s) {
    if (s.num_actions() == 0 || Chance(0.4)) return;
    const bool in_order = Chance(0.6);
    const auto ref = [&] {
      int rank = Int(0, s.num_ranks() - 1);
      while (s.ranks[rank].empty()) rank = (rank + 1) % s.num_ranks();
      return ActionRef{rank, Int(0, static_cast<int>(s.ranks[rank].size()) - 1)};
    };
    if (!in_order)
      for (int i = Int(1, 9); i > 0; --i) s.edges.push_back(ref());
    for (auto& list : s.ranks)
      for (Action& a : list) {
        if (!Chance(0.2)) continue;
        if (in_order) {
          a.extra_edges = {static_cast<uint32_t>(s.edges.size()), static_cast<uint16_t>(Int(1, 3))};
          for (int i = 0; i < a.extra_edges.count; ++i) s.edges.push_back(ref());
        } else {
          const int first = Int(0, static_cast<int>(s.edges.size()));
          a.extra_edges = {static_cast<uint32_t>(first),
                           static_cast<uint16_t>(Int(0, static_cast<int>(s.edges.size()) - first))};
        }
      }
  }

  std::mt19937_64 random_;
};

}  // namespace penstock::schedule
