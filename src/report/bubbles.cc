#include "report/bubbles.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "report/analysis/idle.h"
#include "report/analysis/step.h"

namespace penstock::report {
namespace {

using analysis::Blocker;
using analysis::Gap;
using analysis::StepEvents;
using schedule::Event;
using schedule::Timeline;

// The layers' part of a rank's step.
struct Layers {
  double first = 0, last = 0;  // start of the first, end of the last layer computation; the step's start if none
  double work_over = 0;        // end of the last work of the compute stream
  std::set<uint16_t> stages;
};

Layers LayersOf(const Timeline& t, const StepEvents& step, int32_t rank) {
  Layers layers;
  bool any = false;
  layers.first = layers.last = layers.work_over = step.start;
  for (const int32_t i : step.computing[rank]) {
    const Event& e = t.events[i];
    layers.work_over = std::max(layers.work_over, e.end);
    if (!schedule::IsComputeKind(e.action.key.kind)) continue;
    layers.first = any ? std::min(layers.first, analysis::WorkStart(e)) : analysis::WorkStart(e);
    layers.last = any ? std::max(layers.last, e.end) : e.end;
    layers.stages.insert(e.action.key.unit.stage);
    any = true;
  }
  return layers;
}

// Cuts a gap where its cause changes.
class Cutter {
 public:
  Cutter(const StepEvents& step, const std::vector<Layers>& layers, Bubbles& bubbles)
      : step_(step), layers_(layers), bubbles_(bubbles) {
    for (const Layers& l : layers) all_layers_over_ = std::max(all_layers_over_, l.last);
  }

  void Cut(const Gap& gap) {
    const Layers& mine = layers_[gap.rank];
    double at = gap.start;
    const auto until = [&](double time, BubbleCause cause, int32_t peer = -1) {
      const double end = std::min(time, gap.end);
      if (end <= at) return;
      Add(gap, at, end, cause, peer);
      at = end;
    };
    if (!mine.stages.empty()) {
      until(mine.first, BubbleCause::warm_up, gap.peer);
      if (at >= mine.last && !WaitsForReplica(gap)) until(all_layers_over_, BubbleCause::drain, gap.peer);
    }
    if (at >= mine.work_over && gap.blocker == Blocker::none) until(gap.end, BubbleCause::drain);
    switch (gap.blocker) {
      case Blocker::none:
        return until(gap.end, BubbleCause::host);
      case Blocker::copy:
        return until(gap.end, BubbleCause::offload);
      case Blocker::message:
        until(gap.ready, BubbleCause::imbalance, gap.peer);
        return until(gap.end, BubbleCause::message, gap.peer);
      case Blocker::collective:
        until(gap.ready, BubbleCause::imbalance, gap.peer);
        return until(gap.end, BubbleCause::collective);
    }
  }

 private:
  bool WaitsForReplica(const Gap& gap) const {
    return gap.blocker == Blocker::collective && gap.peer >= 0 && gap.peer != gap.rank &&
           layers_[gap.peer].stages == layers_[gap.rank].stages;
  }

  void Add(const Gap& gap, double start, double end, BubbleCause cause, int32_t peer) {
    RankBubbles& rank = bubbles_.ranks[gap.rank];
    rank.by_cause[static_cast<size_t>(cause)] += end - start;
    if (peer == gap.rank) peer = -1;
    const bool waits = cause == BubbleCause::imbalance || cause == BubbleCause::message;
    if (peer >= 0 && waits) rank.by_peer[peer] += end - start;
    bubbles_.spans.push_back({gap.rank, step_.step, cause, peer, gap.event, start, end});
  }

  const StepEvents& step_;
  const std::vector<Layers>& layers_;
  Bubbles& bubbles_;
  double all_layers_over_ = 0;
};

}  // namespace

double RankBubbles::total() const { return std::accumulate(by_cause.begin(), by_cause.end(), 0.0); }

std::pair<int32_t, double> RankBubbles::longest_wait() const {
  std::pair<int32_t, double> longest{-1, 0};
  for (const auto& [peer, seconds] : by_peer)
    if (seconds > longest.second) longest = {peer, seconds};
  return longest;
}

double Bubbles::fraction() const {
  double idle = 0;
  for (const RankBubbles& r : ranks) idle += r.total();
  return makespan > 0 && !ranks.empty() ? idle / (makespan * static_cast<double>(ranks.size())) : 0;
}

Bubbles FindBubbles(const Timeline& timeline, const schedule::StageGraph& graph) {
  Bubbles bubbles;
  bubbles.ranks.resize(timeline.num_ranks);
  for (const StepEvents& step : analysis::StepsOf(timeline)) {
    ++bubbles.steps;
    bubbles.makespan += step.length();
    const auto gaps = analysis::FindGaps(timeline, step, graph);
    std::vector<Layers> layers;
    for (int32_t r = 0; r < timeline.num_ranks; ++r) layers.push_back(LayersOf(timeline, step, r));
    Cutter cutter(step, layers, bubbles);
    for (int32_t r = 0; r < timeline.num_ranks; ++r) {
      for (const Gap& gap : gaps[r]) cutter.Cut(gap);
      double covered = step.start;
      for (const int32_t i : step.computing[r]) {
        const double from = std::max(covered, analysis::WorkStart(timeline.events[i]));
        if (timeline.events[i].end > from) bubbles.ranks[r].busy += timeline.events[i].end - from;
        covered = std::max(covered, timeline.events[i].end);
      }
    }
  }
  return bubbles;
}

}  // namespace penstock::report
