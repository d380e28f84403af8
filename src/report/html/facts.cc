#include "report/html/facts.h"

#include <algorithm>

namespace penstock::report::html {
namespace {

Side SideOf(std::string name, const schedule::Timeline& timeline, const schedule::StageGraph& graph) {
  Side side;
  side.typical = TypicalStepOf(timeline, name == "measured");
  side.name = std::move(name);
  side.timeline = &timeline;
  side.breakdown = Analyse(side.typical);
  side.bubbles = FindBubbles(side.typical, graph);
  side.step_seconds = side.breakdown.makespan;
  if (!side.typical.events.empty()) side.path = CriticalPath(side.typical, side.typical.events[0].step, graph);
  return side;
}

schedule::StageGraph GraphOf(const HtmlInput& input) {
  if (input.schedule != nullptr) return input.schedule->graph;
  int stages = 0;
  for (const schedule::Timeline* t : {input.predicted, input.measured})
    for (size_t i = 0; t != nullptr && i < t->events.size(); ++i)
      if (schedule::IsComputeKind(t->events[i].action.key.kind))
        stages = std::max(stages, t->events[i].action.key.unit.stage + 1);
  return schedule::StageGraph::Chain(std::max(1, stages));
}

}  // namespace

Facts::Facts(const HtmlInput& in) : input(in), graph(GraphOf(in)) {
  if (in.predicted != nullptr && !in.predicted->events.empty()) predicted = SideOf("predicted", *in.predicted, graph);
  if (in.measured != nullptr && !in.measured->events.empty()) measured = SideOf("measured", *in.measured, graph);
  if (predicted && measured) gap = CompareTimelines(*in.predicted, *in.measured, graph);

  const auto rank = [&](size_t r) -> RankPeak& {
    if (r >= peaks.size()) peaks.resize(r + 1);
    return peaks[r];
  };
  for (size_t r = 0; r < in.predicted_peak_bytes.size(); ++r) rank(r).predicted = in.predicted_peak_bytes[r];
  if (predicted)
    for (size_t r = 0; r < predicted->breakdown.memory.size(); ++r) {
      rank(r).predicted = predicted->breakdown.memory[r].bytes;
      rank(r).composition = predicted->breakdown.memory[r];
    }
  for (const StepMetrics& m : in.metrics)
    for (size_t r = 0; r < m.peak_bytes.size(); ++r) rank(r).measured = std::max(rank(r).measured, m.peak_bytes[r]);
  if (measured)
    for (size_t r = 0; r < measured->breakdown.memory.size(); ++r) {
      rank(r).measured = std::max(rank(r).measured, measured->breakdown.memory[r].bytes);
      rank(r).composition = measured->breakdown.memory[r];
    }
  const auto tightness = [&](size_t r) {
    return peaks[r].limit > 0 ? static_cast<double>(peaks[r].bytes()) / static_cast<double>(peaks[r].limit) : 0.0;
  };
  for (size_t r = 0; r < peaks.size(); ++r) {
    if (r < in.memory_limits.size()) peaks[r].limit = in.memory_limits[r];
    if (peaks[r].bytes() <= 0) continue;
    if (tightest < 0 ||
        std::pair(tightness(r), peaks[r].bytes()) > std::pair(tightness(tightest), peaks[tightest].bytes()))
      tightest = static_cast<int>(r);
  }
}

int64_t Facts::all_peaks() const {
  int64_t sum = 0;
  for (const RankPeak& peak : peaks) sum += peak.bytes();
  return sum;
}

double Facts::memory_share() const {
  if (tightest < 0 || peaks[tightest].limit <= 0) return 0;
  return static_cast<double>(input.shared_memory ? all_peaks() : peaks[tightest].bytes()) /
         static_cast<double>(peaks[tightest].limit);
}

}  // namespace penstock::report::html
