#include "simulate/list_engine.h"

#include <algorithm>
#include <set>

#include "schedule/effects.h"
#include "simulate/action_graph.h"
#include "simulate/stuck.h"
#include "simulate/walk/program_walk.h"

namespace penstock::simulate {

using schedule::Action;
using schedule::ActionRef;
using schedule::Kind;
using schedule::Schedule;
using schedule::Stream;

namespace {

double ToDouble(const Rational& time) { return time.ToDouble(); }
double ToDouble(double time) { return time; }

// Walks the graph in an order in which everything comes after what it waits for: along the list of a rank as far as it
// goes, then elsewhere.
template <typename Time>
class Walk {
 public:
  Walk(const Schedule& schedule, const schedule::ActionCosts<Time>& costs, schedule::Transport transport)
      : schedule_(schedule), costs_(costs), graph_(schedule, transport) {}

  void Run(std::vector<std::vector<Interval<Time>>>& times) {
    times.resize(schedule_.num_ranks());
    for (int r = 0; r < schedule_.num_ranks(); ++r) times[r].resize(schedule_.ranks[r].size());
    // When the messages and, apart from them, everything else that a node waits for are there.
    ready_.assign(graph_.num_nodes(), Time(0));
    arrived_.assign(graph_.num_nodes(), Time(0));
    std::vector<uint32_t> waiting = graph_.in_degrees();
    std::vector<uint32_t> runnable;
    for (auto n = static_cast<uint32_t>(waiting.size()); n-- > 0;)
      if (waiting[n] == 0) runnable.push_back(n);
    size_t walked = 0;
    while (!runnable.empty()) {
      const uint32_t node = runnable.back();
      runnable.pop_back();
      ++walked;
      const Time end = graph_.is_meeting(node) ? Meet(node, times) : Visit(node, times);
      for (const auto* edge = graph_.begin(node); edge != graph_.end(node); ++edge) {
        Release(node, end, *edge);
        if (--waiting[edge->to] == 0) runnable.push_back(edge->to);
      }
    }
    if (walked == waiting.size()) return;
    std::vector<bool> done(waiting.size());
    for (size_t n = 0; n < waiting.size(); ++n) done[n] = waiting[n] == 0;
    ThrowStuck(schedule_, graph_, done);
  }

 private:
  Time Visit(uint32_t node, std::vector<std::vector<Interval<Time>>>& times) {
    const ActionRef ref = graph_.action_of(node);
    const Action& action = schedule_.at(ref);
    Interval<Time>& t = times[ref.rank][ref.index];
    const bool receives = action.key.kind == Kind::recv;
    t.start = receives ? ready_[node] : std::max(ready_[node], arrived_[node]);
    t.end = t.start + costs_.Duration(schedule_, ref.rank, action);
    if (receives) t.end = std::max(t.end, arrived_[node]);
    // What meets others goes on at the meeting point, which needs to know when the member was ready.
    return graph_.meets(node) ? t.start : t.end;
  }

  Time Meet(uint32_t meeting, std::vector<std::vector<Interval<Time>>>& times) {
    Time longest = 0;
    for (const uint32_t node : graph_.members(meeting)) {
      const ActionRef ref = graph_.action_of(node);
      const Action& action = schedule_.at(ref);
      Time duration = costs_.Duration(schedule_, ref.rank, action);
      if (action.key.kind == Kind::send) duration += costs_.Latency(schedule_, ref.rank, action.peer_or_group, action);
      longest = std::max(longest, duration);
    }
    const Time end = ready_[meeting] + longest;
    for (const uint32_t node : graph_.members(meeting)) {
      const ActionRef ref = graph_.action_of(node);
      times[ref.rank][ref.index].end = end;
    }
    return end;
  }

  void Release(uint32_t node, const Time& end, const ActionGraph::Edge& edge) {
    if (!edge.crosses) {
      ready_[edge.to] = std::max(ready_[edge.to], end);
      return;
    }
    const ActionRef from = graph_.action_of(graph_.is_meeting(node) ? graph_.members(node).front() : node);
    const ActionRef to = graph_.action_of(edge.to);
    const Time latency = costs_.Latency(schedule_, from.rank, to.rank, MessageOf(schedule_.at(from)));
    arrived_[edge.to] = std::max(arrived_[edge.to], end + latency);
  }

  const Schedule& schedule_;
  const schedule::ActionCosts<Time>& costs_;
  ActionGraph graph_;
  std::vector<Time> ready_, arrived_;
};

std::vector<Rational> PeakMicroBatches(const Schedule& schedule) {
  std::vector<Rational> peaks;
  for (const auto& list : schedule.ranks) {
    std::set<uint16_t> stages;
    int64_t alive = 0, peak = 0;
    for (const Action& a : list) {
      if (a.key.kind == Kind::forward) {
        stages.insert(a.key.unit.stage);
        peak = std::max(peak, ++alive);
      }
      if (HalvesOf(a.key.kind) & schedule::kWeightHalf) --alive;
    }
    peaks.push_back(Rational(peak, std::max<int64_t>(1, static_cast<int64_t>(stages.size()))));
  }
  return peaks;
}

}  // namespace

template <typename Time>
Times<Time> TimesInOrder(const Schedule& schedule, const schedule::ActionCosts<Time>& costs,
                         schedule::Transport transport) {
  Times<Time> times;
  if (!WalkInProgramOrder(schedule, costs, transport, times)) Walk<Time>(schedule, costs, transport).Run(times);
  return times;
}

template <typename Time>
Times<Time> TimesByGraph(const Schedule& schedule, const schedule::ActionCosts<Time>& costs,
                         schedule::Transport transport) {
  Times<Time> times;
  Walk<Time>(schedule, costs, transport).Run(times);
  return times;
}

template <typename Time>
Replay<Time> ReplayInOrder(const Schedule& schedule, const schedule::ActionCosts<Time>& costs,
                           schedule::Transport transport) {
  return Summarise(schedule, TimesInOrder(schedule, costs, transport));
}

template <typename Time>
Replay<Time> Summarise(const Schedule& schedule, Times<Time> times) {
  Replay<Time> replay;
  replay.times = std::move(times);
  replay.actions = schedule.num_actions();
  replay.peak_micro_batches = PeakMicroBatches(schedule);
  Time work = 0;
  for (int r = 0; r < schedule.num_ranks(); ++r) {
    Time first = 0, last = 0;
    bool any = false;
    for (size_t i = 0; i < schedule.ranks[r].size(); ++i) {
      const Interval<Time>& t = replay.times[r][i];
      replay.makespan = std::max(replay.makespan, t.end);
      if (schedule.ranks[r][i].stream == Stream::compute) work += t.end - t.start;
      if (!IsComputeKind(schedule.ranks[r][i].key.kind)) continue;
      first = any ? std::min(first, t.start) : t.start;
      last = std::max(last, t.end);
      any = true;
    }
    replay.max_span = std::max(replay.max_span, last - first);
  }
  if (replay.makespan > Time(0))
    replay.bubble_fraction = Time(1) - work / (Time(schedule.num_ranks()) * replay.makespan);
  return replay;
}

template <typename Time>
schedule::Timeline ToTimeline(const Schedule& schedule, const Replay<Time>& replay, std::string title) {
  schedule::Timeline timeline;
  timeline.title = std::move(title);
  timeline.num_ranks = schedule.num_ranks();
  timeline.events.reserve(replay.actions);
  for (int r = 0; r < schedule.num_ranks(); ++r) {
    const auto begin = timeline.events.size();
    for (size_t i = 0; i < schedule.ranks[r].size(); ++i) {
      const Action& action = schedule.ranks[r][i];
      schedule::Event event;
      event.action = action;
      event.rank = r;
      event.index = static_cast<int32_t>(i);
      event.step = action.key.step;
      event.start = ToDouble(replay.times[r][i].start);
      event.end = ToDouble(replay.times[r][i].end);
      event.bytes = schedule.sizes.at(action.bytes).upper_bound;
      event.provenance = schedule::Provenance::predicted;
      timeline.events.push_back(event);
    }
    std::stable_sort(timeline.events.begin() + begin, timeline.events.end(),
                     [](const schedule::Event& a, const schedule::Event& b) { return a.start < b.start; });
  }
  return timeline;
}

template Times<Rational> TimesInOrder(const Schedule&, const schedule::ActionCosts<Rational>&, schedule::Transport);
template Times<double> TimesInOrder(const Schedule&, const schedule::ActionCosts<double>&, schedule::Transport);
template Times<Rational> TimesByGraph(const Schedule&, const schedule::ActionCosts<Rational>&, schedule::Transport);
template Times<double> TimesByGraph(const Schedule&, const schedule::ActionCosts<double>&, schedule::Transport);
template Replay<Rational> Summarise(const Schedule&, Times<Rational>);
template Replay<double> Summarise(const Schedule&, Times<double>);
template Replay<Rational> ReplayInOrder(const Schedule&, const schedule::ActionCosts<Rational>&, schedule::Transport);
template Replay<double> ReplayInOrder(const Schedule&, const schedule::ActionCosts<double>&, schedule::Transport);
template schedule::Timeline ToTimeline(const Schedule&, const Replay<Rational>&, std::string);
template schedule::Timeline ToTimeline(const Schedule&, const Replay<double>&, std::string);

}  // namespace penstock::simulate
