#include "report/breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "schedule/operators.h"

namespace penstock::report {
namespace {

using schedule::Event;
using schedule::Kind;
using schedule::Stream;
using schedule::Timeline;

struct Span {
  double start = 0, end = 0;
};

// Disjoint and ascending.
std::vector<Span> Union(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  std::vector<Span> merged;
  for (const Span& s : spans) {
    if (s.end <= s.start) continue;
    if (!merged.empty() && s.start <= merged.back().end)
      merged.back().end = std::max(merged.back().end, s.end);
    else
      merged.push_back(s);
  }
  return merged;
}

double Length(const std::vector<Span>& disjoint) {
  double length = 0;
  for (const Span& s : disjoint) length += s.end - s.start;
  return length;
}

bool IsMessageOrCollective(Kind kind) { return kind == Kind::send || kind == Kind::recv || kind == Kind::collective; }

struct StepOfRank {
  std::vector<Span> busy, wait;
};

std::vector<KindTimes> TimesOfKinds(const Timeline& timeline) {
  std::map<std::pair<Kind, schedule::OpId>, KindTimes> kinds;
  for (const Event& e : timeline.events) {
    KindTimes& k = kinds[{e.action.key.kind, e.action.key.op}];
    ++k.count;
    k.seconds += e.end - e.start - e.waited;
    k.bytes += e.bytes;
  }
  std::vector<KindTimes> list;
  for (auto& [key, k] : kinds) {
    k.name = schedule::Name(key.first);
    if (key.second != schedule::kNoOp) k.name += fmt::format(":{}", schedule::OpName(key.second));
    list.push_back(k);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const KindTimes& a, const KindTimes& b) { return a.seconds > b.seconds; });
  return list;
}

std::vector<StageTimes> TimesOfStages(const Timeline& timeline) {
  std::vector<StageTimes> stages;
  std::vector<std::array<int64_t, schedule::kKindCount>> counts;
  const auto slot = [](StageTimes& t, Kind kind) -> double* {
    switch (kind) {
      case Kind::forward:
        return &t.forward;
      case Kind::recompute:
        return &t.recompute;
      case Kind::backward:
        return &t.backward;
      case Kind::backward_input:
        return &t.backward_input;
      case Kind::backward_weight:
        return &t.backward_weight;
      case Kind::update:
      case Kind::check:
      case Kind::task:
      case Kind::send:
      case Kind::recv:
      case Kind::collective:
      case Kind::copy:
        return nullptr;
    }
    return nullptr;
  };
  for (const Event& e : timeline.events) {
    if (!schedule::IsComputeKind(e.action.key.kind)) continue;
    const size_t stage = e.action.key.unit.stage;
    if (stage >= stages.size()) {
      stages.resize(stage + 1);
      counts.resize(stage + 1);
    }
    *slot(stages[stage], e.action.key.kind) += e.end - e.start - e.waited;
    ++counts[stage][static_cast<size_t>(e.action.key.kind)];
  }
  for (size_t s = 0; s < stages.size(); ++s)
    for (int k = 0; k < schedule::kKindCount; ++k)
      if (counts[s][k] > 0) *slot(stages[s], static_cast<Kind>(k)) /= static_cast<double>(counts[s][k]);
  return stages;
}

std::vector<PeakMemory> Peaks(const Timeline& timeline) {
  if (timeline.memory.empty()) return {};
  std::vector<PeakMemory> peaks(timeline.num_ranks), live(timeline.num_ranks);
  std::vector<const schedule::MemoryEvent*> events;
  for (const auto& e : timeline.memory)
    if (e.tier == Tier::device) events.push_back(&e);
  std::stable_sort(events.begin(), events.end(), [](const auto* a, const auto* b) { return a->time < b->time; });
  for (const auto* e : events) {
    PeakMemory& now = live[e->rank];
    int64_t& of_class = now.by_class[static_cast<size_t>(e->buffer_class)];
    now.bytes += e->live_bytes - of_class;
    of_class = e->live_bytes;
    if (now.bytes > peaks[e->rank].bytes) peaks[e->rank] = now;
  }
  return peaks;
}

}  // namespace

Breakdown Analyse(const Timeline& timeline) {
  Breakdown b;
  b.ranks.resize(timeline.num_ranks);
  std::map<int32_t, std::pair<Span, std::map<int32_t, StepOfRank>>> steps;
  for (const Event& e : timeline.events) {
    auto [it, added] = steps.try_emplace(e.step);
    Span& window = it->second.first;
    window.start = added ? e.start : std::min(window.start, e.start);
    window.end = added ? e.end : std::max(window.end, e.end);
    StepOfRank& mine = it->second.second[e.rank];
    const double work = e.start + e.waited;
    if (e.action.stream == Stream::compute) mine.busy.push_back({work, e.end});
    mine.wait.push_back(
        {e.start, IsMessageOrCollective(e.action.key.kind) && e.action.key.kind != Kind::send ? e.end : work});
  }
  double busy = 0;
  for (auto& [step, content] : steps) {
    const double window = content.first.end - content.first.start;
    b.makespan += window;
    for (int32_t r = 0; r < timeline.num_ranks; ++r) {
      StepOfRank& mine = content.second[r];
      const auto computing = Union(std::move(mine.busy));
      auto occupied = computing;
      occupied.insert(occupied.end(), mine.wait.begin(), mine.wait.end());
      const double busy_here = Length(computing);
      const double wait_here = Length(Union(std::move(occupied))) - busy_here;
      b.ranks[r].busy += busy_here;
      b.ranks[r].wait += wait_here;
      b.ranks[r].other += window - busy_here - wait_here;
      busy += busy_here;
    }
  }
  b.steps = static_cast<int64_t>(steps.size());
  if (b.makespan > 0 && timeline.num_ranks > 0) b.bubble_fraction = 1 - busy / (b.makespan * timeline.num_ranks);
  b.kinds = TimesOfKinds(timeline);
  b.stages = TimesOfStages(timeline);
  b.memory = Peaks(timeline);
  return b;
}

std::vector<AvoidableWait> AvoidableWaits(const Timeline& timeline, const schedule::StageGraph& graph,
                                          double tolerance) {
  using Node = std::tuple<int32_t, bool, int, int32_t>;  // step, backward?, stage, micro-batch
  struct Produced {
    double end;
    int32_t rank;
  };
  std::map<Node, Produced> produced;
  const auto makes_value = [](Kind kind) { return kind == Kind::forward; };
  const auto makes_gradient = [](Kind kind) { return kind == Kind::backward || kind == Kind::backward_input; };
  for (const Event& e : timeline.events) {
    const schedule::Key& k = e.action.key;
    if (k.unit.stage >= graph.num_stages()) continue;
    if (makes_value(k.kind) || makes_gradient(k.kind))
      produced[{e.step, makes_gradient(k.kind), k.unit.stage, k.micro_batch}] = {e.end, e.rank};
  }

  // Inputs of each compute event that came from compute: (when they were made, on which rank).
  struct Start {
    int32_t event;
    double work;      // when it started
    double previous;  // end of the action before it on its compute stream
    std::vector<Produced> inputs;
  };
  std::vector<Start> starts;
  std::map<std::pair<int32_t, int32_t>, double> transfer;  // link -> shortest gap
  std::vector<int32_t> order(timeline.events.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const Event &x = timeline.events[a], &y = timeline.events[b];
    return std::tie(x.rank, x.start) < std::tie(y.rank, y.start);
  });
  std::map<std::pair<int32_t, int32_t>, double> previous_end;  // (rank, step)
  for (const int32_t i : order) {
    const Event& e = timeline.events[i];
    if (e.action.stream != Stream::compute) continue;
    const auto before = previous_end.find({e.rank, e.step});
    const schedule::Key& k = e.action.key;
    if (schedule::IsComputeKind(k.kind) && k.kind != Kind::backward_weight && k.kind != Kind::recompute &&
        k.unit.stage < graph.num_stages()) {
      Start start{i, e.start + e.waited, before == previous_end.end() ? e.start + e.waited : before->second, {}};
      const bool gradient = makes_gradient(k.kind);
      const auto need = [&](bool is_gradient, int stage) {
        const auto it = produced.find({e.step, is_gradient, stage, k.micro_batch});
        if (it != produced.end()) start.inputs.push_back(it->second);
      };
      if (gradient) {
        need(false, k.unit.stage);
        for (const int edge : graph.outputs(k.unit.stage)) need(true, graph.edges()[edge].to);
      } else {
        for (const int edge : graph.inputs(k.unit.stage)) need(false, graph.edges()[edge].from);
      }
      for (const Produced& p : start.inputs) {
        if (p.rank == e.rank) continue;
        const double gap = std::max(0.0, start.work - p.end);
        const auto [link, added] = transfer.emplace(std::pair(p.rank, e.rank), gap);
        if (!added) link->second = std::min(link->second, gap);
      }
      // The first action of a rank waits for its inputs only; one that has none starts the step.
      if (before == previous_end.end() && !start.inputs.empty()) start.previous = start.inputs[0].end;
      starts.push_back(std::move(start));
    }
    double& end = previous_end[{e.rank, e.step}];
    end = std::max(end, e.end);
  }

  std::vector<AvoidableWait> waits;
  for (const Start& s : starts) {
    const int32_t rank = timeline.events[s.event].rank;
    double ready = s.previous;
    for (const Produced& p : s.inputs)
      ready = std::max(ready, p.end + (p.rank == rank ? 0.0 : transfer.at({p.rank, rank})));
    if (s.work - ready > tolerance) waits.push_back({s.work - ready, s.event});
  }
  std::stable_sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return waits;
}

}  // namespace penstock::report
