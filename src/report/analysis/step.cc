#include "report/analysis/step.h"

#include <algorithm>
#include <map>

namespace penstock::report::analysis {

std::vector<StepEvents> StepsOf(const schedule::Timeline& timeline) {
  std::map<int32_t, StepEvents> steps;
  for (size_t i = 0; i < timeline.events.size(); ++i) {
    const schedule::Event& e = timeline.events[i];
    if (e.rank < 0 || e.rank >= timeline.num_ranks) continue;
    auto [it, added] = steps.try_emplace(e.step);
    StepEvents& s = it->second;
    if (added) {
      s.step = e.step;
      s.by_rank.resize(timeline.num_ranks);
      s.computing.resize(timeline.num_ranks);
    }
    s.start = added ? e.start : std::min(s.start, e.start);
    s.end = added ? e.end : std::max(s.end, e.end);
    s.by_rank[e.rank].push_back(static_cast<int32_t>(i));
    if (e.action.stream == schedule::Stream::compute) s.computing[e.rank].push_back(static_cast<int32_t>(i));
  }
  std::vector<StepEvents> list;
  const auto& events = timeline.events;
  for (auto& [step, s] : steps) {
    for (auto& rank : s.by_rank)
      std::stable_sort(rank.begin(), rank.end(), [&](int a, int b) { return events[a].start < events[b].start; });
    for (auto& rank : s.computing)
      std::stable_sort(rank.begin(), rank.end(),
                       [&](int a, int b) { return WorkStart(events[a]) < WorkStart(events[b]); });
    list.push_back(std::move(s));
  }
  return list;
}

size_t TypicalStep(const std::vector<StepEvents>& steps, bool skip_first) {
  std::vector<size_t> order;
  for (size_t i = skip_first && steps.size() > 1 ? 1 : 0; i < steps.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return steps[a].length() < steps[b].length(); });
  return order.empty() ? 0 : order[order.size() / 2];
}

}  // namespace penstock::report::analysis
