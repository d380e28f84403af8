#include "report/analysis/idle.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "schedule/operators.h"

namespace penstock::report::analysis {
namespace {

using schedule::Event;
using schedule::Key;
using schedule::Kind;
using schedule::Stream;
using schedule::Timeline;

// Actions before a blocked one that are looked at for what it may have waited for.
constexpr int kLookBack = 256;

bool MakesGradient(Kind kind) { return kind == Kind::backward || kind == Kind::backward_input; }

// The compute of a step that makes boundary values and gradients.
class Producers {
 public:
  Producers(const Timeline& t, const StepEvents& step) {
    for (const auto& rank : step.computing)
      for (const int32_t i : rank) {
        const Key& k = t.events[i].action.key;
        if (k.kind != Kind::forward && !MakesGradient(k.kind)) continue;
        auto [it, added] = made_.try_emplace({MakesGradient(k.kind), k.unit.stage, k.micro_batch}, i);
        if (!added && t.events[i].end > t.events[it->second].end) it->second = i;
      }
  }
  int32_t Find(bool gradient, int stage, int32_t micro_batch) const {
    const auto it = made_.find({gradient, stage, micro_batch});
    return it == made_.end() ? -1 : it->second;
  }

 private:
  std::map<std::tuple<bool, int, int32_t>, int32_t> made_;
};

// Which compute made what a message carries: its edge is in the key, and the operator says which of its ends.
int32_t ProducerOf(const Event& message, const Producers& producers, const schedule::StageGraph& graph) {
  const Key& k = message.action.key;
  if (k.part < 0 || k.part >= static_cast<int>(graph.edges().size())) return -1;
  const auto name = schedule::OpName(k.op);
  const auto& edge = graph.edges()[k.part];
  if (name == schedule::ops::kActivation) return producers.Find(false, edge.from, k.micro_batch);
  if (name == schedule::ops::kGradient) return producers.Find(true, edge.to, k.micro_batch);
  return -1;
}

bool HasWaits(const Timeline& t, const StepEvents& step) {
  for (const auto& rank : step.by_rank)
    for (const int32_t i : rank)
      if (t.events[i].waited > 0) return true;
  return false;
}

class Finder {
 public:
  Finder(const Timeline& t, const StepEvents& step, const schedule::StageGraph& graph)
      : t_(t), step_(step), graph_(graph), producers_(t, step), meetings_(MeetingsOf(t, step)) {
    measured_ = HasWaits(t, step);
    tolerance_ = 1e-9 * step.length();
    for (const Transfer& transfer : TransfersOf(t, step, graph)) {
      const Key& k = t.events[transfer.recv].action.key;
      receives_[{transfer.to, schedule::OpName(k.op) == schedule::ops::kGradient, k.part, k.micro_batch}] = transfer;
    }
    if (receives_.empty()) ShortestHops();
    arrivals_.resize(t.num_ranks);
    for (int32_t r = 0; r < t.num_ranks; ++r) {
      for (const int32_t i : step.by_rank[r]) {
        const Kind kind = t.events[i].action.key.kind;
        if (kind == Kind::recv || kind == Kind::collective || kind == Kind::copy) arrivals_[r].push_back(i);
        if (kind == Kind::collective) of_unit_[{r, t.events[i].action.key.unit}].push_back(i);
      }
      std::stable_sort(arrivals_[r].begin(), arrivals_[r].end(),
                       [&](int a, int b) { return t.events[a].end < t.events[b].end; });
    }
    for (auto& [unit, list] : of_unit_) SortByIndex(list);
    in_order_ = arrivals_;
    for (auto& list : in_order_) SortByIndex(list);
  }

  std::vector<Gap> OfRank(int32_t rank) {
    std::vector<Gap> gaps;
    double covered = step_.start;
    for (const int32_t i : step_.computing[rank]) {
      const double work = std::min(WorkStart(t_.events[i]), step_.end);
      if (work > covered) Split(rank, covered, work, i, gaps);
      covered = std::max(covered, t_.events[i].end);
    }
    if (covered < step_.end) Split(rank, covered, step_.end, -1, gaps);
    return gaps;
  }

 private:
  void SortByIndex(std::vector<int32_t>& list) const {
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) { return t_.events[a].index < t_.events[b].index; });
  }

  // The transfer of a link without messages in the schedule: the shortest gap between producer and consumer.
  void ShortestHops() {
    for (const auto& rank : step_.computing)
      for (const int32_t i : rank)
        EachRemoteProducer(t_.events[i], [&](int32_t p) {
          const double gap = std::max(0.0, WorkStart(t_.events[i]) - t_.events[p].end);
          const auto [hop, added] = hops_.try_emplace({t_.events[p].rank, t_.events[i].rank}, gap);
          if (!added) hop->second = std::min(hop->second, gap);
        });
  }

  template <typename Visit>
  void EachRemoteProducer(const Event& e, Visit visit) const {
    const Key& k = e.action.key;
    if (k.unit.stage >= graph_.num_stages()) return;
    const auto need = [&](bool gradient, int stage) {
      const int32_t p = producers_.Find(gradient, stage, k.micro_batch);
      if (p >= 0 && t_.events[p].rank != e.rank) visit(p);
    };
    if (k.kind == Kind::forward)
      for (const int edge : graph_.inputs(k.unit.stage)) need(false, graph_.edges()[edge].from);
    else if (MakesGradient(k.kind))
      for (const int edge : graph_.outputs(k.unit.stage)) need(true, graph_.edges()[edge].to);
  }

  // [start, end) of `rank`, after which `event` worked (-1: the step ended).
  void Split(int32_t rank, double start, double end, int32_t event, std::vector<Gap>& gaps) {
    if (!measured_ && event >= 0) return Push(Blocked(rank, start, end, event), gaps);
    // Where the rank was blocked, or inside a collective or copy that its thread carried out itself.
    struct Part {
      double start, end;
      int32_t event;
      bool own;
    };
    std::vector<Part> parts;
    const auto& list = step_.by_rank[rank];
    // Events are in order of their start and those of one thread do not overlap, so few before `start` reach into it;
    // the longest duration bounds how far to look back.
    const double longest = Longest(rank);
    auto it = std::lower_bound(list.begin(), list.end(), start - longest,
                               [&](int32_t i, double time) { return t_.events[i].start < time; });
    for (; it != list.end() && t_.events[*it].start < end; ++it) {
      const Event& e = t_.events[*it];
      const Kind kind = e.action.key.kind;
      if (kind != Kind::recv && e.waited > 0 && WorkStart(e) > start)
        parts.push_back({e.start, WorkStart(e), *it, false});
      const bool inside = kind == Kind::collective || kind == Kind::copy || (kind == Kind::recv && !measured_);
      if (inside && e.end > start && e.end > WorkStart(e)) parts.push_back({WorkStart(e), e.end, *it, true});
    }
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.start < b.start; });
    double at = start;
    for (const Part& p : parts) {
      const double from = std::max(at, p.start), to = std::min(end, p.end);
      if (to <= from) continue;
      if (from > at) Push({rank, at, from, Blocker::none, -1, 0, event, -1}, gaps);
      Push(p.own ? Inside(rank, from, to, p.event) : Blocked(rank, from, to, p.event), gaps);
      at = to;
    }
    if (at < end) Push({rank, at, end, Blocker::none, -1, 0, event, -1}, gaps);
  }

  double Longest(int32_t rank) {
    if (longest_.empty()) longest_.assign(t_.num_ranks, -1);
    double& longest = longest_[rank];
    if (longest < 0) {
      longest = 0;
      for (const int32_t i : step_.by_rank[rank]) {
        // A measured receive lasts until somebody waited for it; it is not looked at here.
        if (measured_ && t_.events[i].action.key.kind == Kind::recv) continue;
        longest = std::max(longest, t_.events[i].end - t_.events[i].start);
      }
    }
    return longest;
  }

  static void Push(const Gap& gap, std::vector<Gap>& gaps) {
    if (gap.end > gap.start) gaps.push_back(gap);
  }

  Gap Inside(int32_t rank, double start, double end, int32_t event) const {
    Gap gap{rank, start, end, Blocker::none, -1, 0, event, event};
    SetCause(gap, event);
    return gap;
  }

  void SetCause(Gap& gap, int32_t event) const {
    const Event& e = t_.events[event];
    gap.cause = event;
    if (e.action.key.kind == Kind::copy) {
      gap.blocker = Blocker::copy;
      gap.peer = gap.rank;
      gap.ready = gap.start;
    } else if (e.action.key.kind == Kind::collective) {
      gap.blocker = Blocker::collective;
      gap.peer = meetings_[event].last_rank;
      gap.ready = meetings_[event].joined;
    } else {
      gap.blocker = Blocker::message;
      gap.peer = e.action.peer_or_group;
      gap.ready = gap.start;
    }
  }

  void SetMessage(Gap& gap, const Transfer& transfer) const {
    gap.blocker = Blocker::message;
    gap.peer = transfer.from;
    gap.ready = transfer.ready;
    gap.cause = transfer.recv;
  }

  Gap Blocked(int32_t rank, double start, double end, int32_t event) {
    Gap gap{rank, start, end, Blocker::none, -1, 0, event, -1};
    const Event& e = t_.events[event];
    if (receives_.empty()) {
      double latest = start;
      EachRemoteProducer(e, [&](int32_t p) {
        const double arrival = t_.events[p].end + hops_.at({t_.events[p].rank, rank});
        if (arrival <= latest + tolerance_ || t_.events[p].end > end + tolerance_) return;
        latest = arrival;
        gap.blocker = Blocker::message;
        gap.peer = t_.events[p].rank;
        gap.ready = t_.events[p].end;
        gap.cause = p;
      });
    } else {
      const Transfer* latest = nullptr;
      const Key& k = e.action.key;
      const auto consider = [&](bool gradient, int edge) {
        const auto it = receives_.find({rank, gradient, edge, k.micro_batch});
        if (it == receives_.end() || it->second.arrival <= start || it->second.arrival > end + tolerance_) return;
        if (latest == nullptr || it->second.arrival > latest->arrival) latest = &it->second;
      };
      if (k.unit.stage < graph_.num_stages()) {
        if (k.kind == Kind::forward)
          for (const int edge : graph_.inputs(k.unit.stage)) consider(false, edge);
        if (MakesGradient(k.kind))
          for (const int edge : graph_.outputs(k.unit.stage)) consider(true, edge);
      }
      if (latest != nullptr) SetMessage(gap, *latest);
    }
    if (gap.blocker == Blocker::none) Other(gap, e);
    if (gap.blocker != Blocker::none && gap.ready > gap.end) gap.ready = gap.end;
    return gap;
  }

  // Neither a boundary nor a neighbour: what else arrived just before the action went on.
  void Other(Gap& gap, const Event& e) const {
    if (!measured_) {
      const auto& list = arrivals_[gap.rank];
      auto it = std::upper_bound(list.begin(), list.end(), gap.end + tolerance_,
                                 [&](double time, int32_t i) { return time < t_.events[i].end; });
      while (it != list.begin()) {
        const Event& a = t_.events[*--it];
        if (a.end < gap.end - tolerance_) break;  // the gap would have ended with it
        if (a.index < e.index) return Attribute(gap, *it);
      }
      return;
    }
    const auto unit = of_unit_.find({gap.rank, e.action.key.unit});
    int32_t found = -1;
    if (unit != of_unit_.end() && !schedule::IsComputeKind(e.action.key.kind)) found = Before(unit->second, e.index);
    // A collective of another unit, a copy, or a message that is not a boundary: the last that can have been pending.
    const auto& order = in_order_[gap.rank];
    auto it = std::lower_bound(order.begin(), order.end(), e.index,
                               [&](int32_t i, int32_t limit) { return t_.events[i].index < limit; });
    for (int looked = 0; found < 0 && it != order.begin() && looked < kLookBack; ++looked) {
      const Event& a = t_.events[*--it];
      const bool receive = a.action.key.kind == Kind::recv;
      if (receive && (a.end <= gap.start || a.end > gap.end + tolerance_)) continue;
      if (schedule::IsComputeKind(e.action.key.kind) && a.action.key.kind == Kind::collective) continue;
      found = *it;
    }
    if (found >= 0) Attribute(gap, found);
  }

  int32_t Before(const std::vector<int32_t>& list, int32_t index) const {
    const auto it = std::lower_bound(list.begin(), list.end(), index,
                                     [&](int32_t i, int32_t limit) { return t_.events[i].index < limit; });
    return it == list.begin() ? -1 : *(it - 1);
  }

  void Attribute(Gap& gap, int32_t cause) const {
    const Event& a = t_.events[cause];
    if (a.action.key.kind == Kind::recv)
      for (const bool gradient : {false, true}) {
        const auto it = receives_.find({gap.rank, gradient, a.action.key.part, a.action.key.micro_batch});
        if (it != receives_.end() && it->second.recv == cause) return SetMessage(gap, it->second);
      }
    SetCause(gap, cause);
  }

  const Timeline& t_;
  const StepEvents& step_;
  const schedule::StageGraph& graph_;
  Producers producers_;
  std::vector<Meeting> meetings_;
  bool measured_ = false;
  double tolerance_ = 0;
  std::map<std::tuple<int32_t, bool, int, int32_t>, Transfer> receives_;  // rank, gradient?, edge, micro-batch
  std::map<std::pair<int32_t, int32_t>, double> hops_;                    // without messages: link -> seconds
  std::vector<std::vector<int32_t>> arrivals_;                            // [rank] receives, collectives, copies by end
  std::vector<std::vector<int32_t>> in_order_;                            // [rank] the same in program order
  std::map<std::pair<int32_t, schedule::Unit>, std::vector<int32_t>> of_unit_;  // collectives, by index
  std::vector<double> longest_;                                                 // [rank]
};

}  // namespace

std::vector<std::vector<Gap>> FindGaps(const Timeline& timeline, const StepEvents& step,
                                       const schedule::StageGraph& graph) {
  Finder finder(timeline, step, graph);
  std::vector<std::vector<Gap>> gaps;
  for (int32_t r = 0; r < timeline.num_ranks; ++r) gaps.push_back(finder.OfRank(r));
  return gaps;
}

std::vector<Transfer> TransfersOf(const Timeline& timeline, const StepEvents& step, const schedule::StageGraph& graph) {
  using Message = std::tuple<int32_t, int32_t, Key>;  // from, to, key
  std::map<Message, std::vector<int32_t>> sends;
  const auto message = [&](int32_t i, int32_t from, int32_t to) {
    Key key = timeline.events[i].action.key;
    key.kind = Kind::send;
    return Message(from, to, key);
  };
  for (const auto& rank : step.by_rank)
    for (const int32_t i : rank) {
      const Event& e = timeline.events[i];
      if (e.action.key.kind == Kind::send) sends[message(i, e.rank, e.action.peer_or_group)].push_back(i);
    }
  const Producers producers(timeline, step);
  const bool measured = HasWaits(timeline, step);
  std::map<Message, size_t> taken;
  std::vector<Transfer> transfers;
  for (const auto& rank : step.by_rank) {
    std::vector<std::pair<double, double>> blocked;  // spans in which this rank waited, ascending
    for (const int32_t i : rank) {
      const Event& e = timeline.events[i];
      if (e.action.key.kind != Kind::recv && e.waited > 0) blocked.push_back({e.start, WorkStart(e)});
    }
    for (const int32_t i : rank) {
      const Event& e = timeline.events[i];
      if (e.action.key.kind != Kind::recv) continue;
      const Message m = message(i, e.action.peer_or_group, e.rank);
      const auto it = sends.find(m);
      size_t& next = taken[m];
      if (it == sends.end() || next >= it->second.size()) continue;
      Transfer t;
      t.from = e.action.peer_or_group;
      t.to = e.rank;
      t.send = it->second[next++];
      t.recv = i;
      t.arrival = e.end;
      const Event& send = timeline.events[t.send];
      const int32_t producer = ProducerOf(send, producers, graph);
      t.ready =
          producer >= 0 && timeline.events[producer].rank == t.from ? timeline.events[producer].end : WorkStart(send);
      double waiting_since = WorkStart(e);
      if (measured) {
        // The wait that ended with the arrival; a message that lay there already ends a wait of no length.
        auto wait = std::upper_bound(blocked.begin(), blocked.end(), std::pair(e.end, e.end));
        waiting_since = wait == blocked.begin() ? e.end : std::min((wait - 1)->first, e.end);
      }
      const double waited = t.arrival - waiting_since;
      t.observed = waited > 0 && EndedByArrival(waited, t.arrival - t.ready);
      transfers.push_back(t);
    }
  }
  return transfers;
}

std::vector<Meeting> MeetingsOf(const Timeline& timeline, const StepEvents& step) {
  std::map<std::pair<int32_t, Key>, Meeting> meetings;
  const auto each = [&](auto visit) {
    for (const auto& rank : step.by_rank)
      for (const int32_t i : rank)
        if (timeline.events[i].action.key.kind == Kind::collective) visit(i, timeline.events[i]);
  };
  each([&](int32_t, const Event& e) {
    auto [it, added] = meetings.try_emplace({e.action.peer_or_group, e.action.key}, Meeting{e.rank, WorkStart(e)});
    if (!added && WorkStart(e) > it->second.joined) it->second = {e.rank, WorkStart(e)};
  });
  std::vector<Meeting> of_event(timeline.events.size(), Meeting{-1, 0});
  each([&](int32_t i, const Event& e) { of_event[i] = meetings.at({e.action.peer_or_group, e.action.key}); });
  return of_event;
}

}  // namespace penstock::report::analysis
