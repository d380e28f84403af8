// Prints the text form (docs/schedule_format.md). What follows from the rest of the file is left out.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.h"
#include "schedule/operators.h"
#include "schedule/text.h"
#include "schedule/text/words.h"

namespace penstock::schedule {
namespace {

using namespace text;  // NOLINT: the shared words of the format

constexpr size_t kStreamColumn = 52;

class Printer {
 public:
  explicit Printer(const Schedule& schedule) : s_(schedule) {
    PENSTOCK_CHECK(!s_.sizes.empty() && s_.sizes[0] == Size{}, "size 0 of a schedule is 'no bytes'");
    PENSTOCK_CHECK(s_.stage_options.empty() || static_cast<int>(s_.stage_options.size()) == s_.num_stages());
    NameSizes();
    // Edges listed action by action, in order, are written where they are used; any other table is written whole.
    size_t next = 0;
    for (const auto& list : s_.ranks)
      for (const Action& a : list) {
        plain_edges_ = plain_edges_ && a.extra_edges.first == (a.extra_edges.count == 0 ? 0 : next);
        next += a.extra_edges.count;
      }
    plain_edges_ = plain_edges_ && next == s_.edges.size();
  }

  std::string Whole() {
    Header();
    for (size_t r = 0; r < s_.ranks.size(); ++r) {
      Line("\nrank {}", r);
      for (const Action& a : s_.ranks[r]) PrintAction(a);
    }
    return std::move(out_);
  }

  std::string Compact() {
    Line("{} {}", kMagic, kVersion);
    Line("name {}", QuoteUnlessWord(s_.name));
    const int replicas = Replicas();
    if (replicas > 1) Line("replicas {}", replicas);
    for (size_t r = 0; r < s_.ranks.size(); ++r) {
      Append("rank {}:", r);
      for (const Action& a : s_.ranks[r]) {
        if (!IsComputeKind(a.key.kind)) continue;
        Append(" ");
        if (!StagesArePositions()) Append("{}", a.key.unit.stage);
        Append("{}{}", LetterOf(a.key.kind), a.key.micro_batch);
      }
      out_ += '\n';
    }
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    Append(format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void NameSizes() {
    std::set<std::string_view> seen;
    for (size_t i = 0; i < s_.sizes.size(); ++i) {
      const std::string& symbol = s_.sizes[i].symbol;
      size_names_.push_back(!symbol.empty() && seen.insert(symbol).second ? QuoteUnlessWord(symbol)
                                                                          : fmt::format("@{}", i));
    }
  }

  // Number of replicas when micro-batches go to them in contiguous runs; 0 otherwise.
  int Replicas() const {
    const auto& replica_of = s_.route.replica_of;
    const int last = replica_of.empty() ? 0 : *std::max_element(replica_of.begin(), replica_of.end());
    if (last < 0 || last >= kMaxRanks) return 0;
    return replica_of == ContiguousReplicas(s_.num_micro_batches(), last + 1) ? last + 1 : 0;
  }

  bool StagesArePositions() {
    if (!stages_are_positions_) {
      const Route& route = s_.route;
      bool same = s_.num_stages() == route.pipeline_size && route.placements.size() == 1;
      for (int s = 0; same && s < s_.num_stages(); ++s) same = route.placements[0][s] == s;
      stages_are_positions_ = same;
    }
    return *stages_are_positions_;
  }

  void Header() {
    Line("{} {}", kMagic, kVersion);
    Line("name {}", QuoteUnlessWord(s_.name));
    if (s_.ranks.empty()) Line("ranks 0");
    PrintGraph();
    PrintRoute();
    PrintContract();
    if (s_.copies != 1) Line("copies {}", s_.copies);
    PrintStageOptions();
    for (size_t g = 0; g < s_.groups.size(); ++g) {
      Append("group {} =", g);
      if (!s_.groups[g].empty()) Append(" {}", PrintIntegers(s_.groups[g], ' '));
      out_ += '\n';
    }
    PrintHolders();
    for (size_t i = 1; i < s_.sizes.size(); ++i)
      Line("size {} {}", QuoteUnlessWord(s_.sizes[i].symbol), s_.sizes[i].upper_bound);
    if (!plain_edges_) {
      Append("edge-table");
      for (const ActionRef e : s_.edges) Append(" {}:{}", e.rank, e.index);
      out_ += '\n';
    }
  }

  void PrintGraph() {
    Line("stages {}", s_.num_stages());
    if (s_.graph == StageGraph::Chain(s_.num_stages())) return;
    if (s_.graph.edges().empty()) Line("edge none");
    for (const StageEdge& e : s_.graph.edges()) {
      Append("edge {} -> {}", e.from, e.to);
      if (e.boundary != StageEdge{}.boundary) Append(" {}", QuoteUnlessWord(e.boundary));
      out_ += '\n';
    }
  }

  void PrintRoute() {
    const Route& route = s_.route;
    Line("micro-batches {}", route.num_micro_batches());
    Line("pipeline {}", route.pipeline_size);
    if (route.placements.empty()) Line("placement none");
    for (const auto& placement : route.placements) Line("placement {}", PlacementText(placement));
    const int replicas = Replicas();
    if (replicas > 1) Line("replicas {}", replicas);
    if (replicas == 0) Line("replica-of {}", PrintIntegers(route.replica_of, ' '));
    if (!route.placement_of.empty())
      Line("placement-of {}", PrintIntegers({route.placement_of.begin(), route.placement_of.end()}, ' '));
    for (const auto& [at, rank] : route.overrides) Line("override {}.{} -> {}", at.first, at.second, rank);
  }

  std::string PlacementText(const std::vector<int>& placement) const {
    for (const std::string& name : PlacementNames()) {
      try {
        if (placement == MakePlacement(name, s_.route.pipeline_size, s_.num_stages())) return name;
      } catch (const UserError&) {
        continue;  // this placement does not exist for these sizes
      }
    }
    return PrintIntegers(placement, ' ');
  }

  void PrintContract() {
    const Contract& c = s_.contract;
    if (c == Contract{}) return;
    Append("contract coverage={} staleness={} equivalence={} deadlock-free=",
           kCoverageRuleNames[static_cast<size_t>(c.coverage)], c.staleness,
           kEquivalenceNames[static_cast<size_t>(c.equivalence)]);
    bool any = false;
    for (int t = 0; t < kTransportCount; ++t) {
      if (!c.deadlock_free[t]) continue;
      Append("{}{}", any ? "," : "", kTransportNames[t]);
      any = true;
    }
    if (!any) Append("none");
    if (!c.reason.empty()) Append(" reason={}", Quote(c.reason));
    out_ += '\n';
  }

  void PrintStageOptions() {
    if (s_.stage_options.empty()) {
      if (s_.num_stages() > 0) Line("stage-options none");
      return;
    }
    std::vector<int32_t> recomputed;
    for (int s = 0; s < s_.num_stages(); ++s)
      if (s_.stage_options[s].recompute) recomputed.push_back(s);
    bool mentioned = !recomputed.empty();
    for (const auto& list : s_.ranks)
      for (const Action& a : list) mentioned = mentioned || a.key.kind == Kind::recompute;
    if (mentioned) Line("recompute {}", recomputed.empty() ? "none" : PrintIntegers(recomputed, ' '));
  }

  void PrintHolders() {
    const auto& units = s_.holders.units;
    if (units.empty()) {
      if (s_.num_stages() > 0) Line("unit none");
      return;
    }
    if (PrintSharedOnly()) return;
    for (const ParameterUnit& u : units) {
      Append("unit {}", UnitText(u.unit));
      if (u.form != BufferForm::full) Append(" form={}", Name(u.form));
      if (u.group >= 0) Append(" holders={}", u.group);
      for (const ParameterUse& use : u.uses) {
        Append(" use={}", use.stage);
        if (use.group >= 0) Append("@{}", use.group);
      }
      out_ += '\n';
    }
  }

  // True when the units are those of DefaultHolders: the lists of shared stages say it all.
  bool PrintSharedOnly() {
    const auto& units = s_.holders.units;
    const size_t stages = static_cast<size_t>(s_.num_stages());
    if (units.size() < stages) return false;
    std::vector<std::vector<uint16_t>> shared;
    for (size_t u = stages; u < units.size(); ++u) {
      std::vector<uint16_t> list;
      for (const ParameterUse& use : units[u].uses) list.push_back(use.stage);
      if (list.empty() || std::any_of(list.begin(), list.end(), [&](uint16_t s) { return s >= stages; })) return false;
      shared.push_back(std::move(list));
    }
    auto groups = s_.groups;
    GroupTable table(groups);
    try {
      if (DefaultHolders(s_, shared, table) != s_.holders || groups.size() != s_.groups.size()) return false;
    } catch (const UserError&) {
      return false;  // too many to derive
    }
    for (const auto& list : shared) Line("shared {}", PrintIntegers({list.begin(), list.end()}, ' '));
    return true;
  }

  static std::string UnitText(Unit unit) {
    return unit.component == 0 ? fmt::format("{}", unit.stage) : fmt::format("c{}/{}", unit.component, unit.stage);
  }

  static bool IsMessage(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

  void PrintAction(const Action& a) {
    const size_t start = out_.size();
    const Key& k = a.key;
    Append("  {}", Name(k.kind));
    if (k.op != kNoOp) Append(":{}", OpName(k.op));
    if (k.kind != Kind::check || k.unit != Unit{} || k.micro_batch != -1) {
      Append(" {}", UnitText(k.unit));
      if (k.micro_batch != -1) Append(".{}", k.micro_batch);
    }
    if (const auto edge = EdgeOfMessage(s_.graph, k); edge ? k.part != *edge : (k.part != 0 || IsMessage(k.kind)))
      Append(" part={}", k.part);
    if (k.round != 0) Append(" round={}", k.round);
    if (k.step != 0) Append(" {:+}", k.step);
    if (a.peer_or_group != -1) {
      switch (k.kind) {
        case Kind::send:
          Append(" ->{}", a.peer_or_group);
          break;
        case Kind::recv:
          Append(" <-{}", a.peer_or_group);
          break;
        case Kind::collective:
          Append(" group={}", a.peer_or_group);
          break;
        default:
          Append(" peer={}", a.peer_or_group);
      }
    } else if (IsMessage(k.kind) || k.kind == Kind::collective) {
      Append(" peer=none");
    }
    if (a.guard != -1) Append(" if={}", a.guard);
    if (a.bytes != 0) Append(" bytes={}", size_names_.at(a.bytes));
    if (!plain_edges_ && a.extra_edges != EdgeRange{}) {
      Append(" after=@{}+{}", a.extra_edges.first, a.extra_edges.count);
    } else if (a.extra_edges.count != 0) {
      Append(" after=");
      for (uint32_t i = 0; i < a.extra_edges.count; ++i) {
        const ActionRef e = s_.edges[a.extra_edges.first + i];
        Append("{}{}:{}", i == 0 ? "" : ",", e.rank, e.index);
      }
    }
    const size_t width = out_.size() - start;
    out_.append(width < kStreamColumn ? kStreamColumn - width : 1, ' ');
    out_ += Name(a.stream);
    out_ += '\n';
  }

  const Schedule& s_;
  std::string out_;
  std::vector<std::string> size_names_;
  bool plain_edges_ = true;
  std::optional<bool> stages_are_positions_;
};

}  // namespace

std::string PrintSchedule(const Schedule& schedule) { return Printer(schedule).Whole(); }
std::string PrintComputeCompact(const Schedule& schedule) { return Printer(schedule).Compact(); }

}  // namespace penstock::schedule
