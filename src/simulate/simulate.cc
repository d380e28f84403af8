#include "simulate/simulate.h"

#include <algorithm>

#include "base/error.h"
#include "simulate/contended_engine.h"

namespace penstock::simulate {

using schedule::Event;
using schedule::Kind;
using schedule::Timeline;

namespace {

// While an action runs its rank holds the most it holds during it, counted as activations; afterwards what is left.
void AddMemory(const cost::MemoryEstimate& memory, Timeline& timeline) {
  struct Change {
    double time;
    cost::BytesByClass live;
  };
  for (size_t first = 0; first < timeline.events.size();) {
    const int32_t rank = timeline.events[first].rank;
    size_t last = first;
    while (last < timeline.events.size() && timeline.events[last].rank == rank) ++last;
    const cost::RankMemory& trace = memory.ranks.at(rank);
    PENSTOCK_CHECK_EQ(trace.trace.size(), last - first);
    // Of the program, in order: the replay of memory knows nothing of time.
    std::vector<const Event*> events(last - first);
    for (size_t i = first; i < last; ++i) events[timeline.events[i].index] = &timeline.events[i];
    cost::BytesByClass before = trace.before;
    std::vector<Change> changes{{0, before}};
    double time = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      const cost::RankMemory::Moment& moment = trace.trace[i];
      int64_t held = 0;
      for (const int64_t b : before) held += b;
      cost::BytesByClass during = before;
      during[static_cast<size_t>(BufferClass::activation)] += std::max<int64_t>(0, moment.peak - held);
      time = std::max(time, events[i]->start + events[i]->waited);
      if (during != before) changes.push_back({time, during});
      time = std::max(time, events[i]->end);
      if (moment.after != during) changes.push_back({time, moment.after});
      before = moment.after;
    }
    cost::BytesByClass shown{};
    // What falls before what rises: between events of one moment the sum is never above both.
    for (const Change& change : changes)
      for (const bool rises : {false, true})
        for (int c = 0; c < kBufferClassCount; ++c) {
          if (change.live[c] == shown[c] || (change.live[c] > shown[c]) != rises) continue;
          shown[c] = change.live[c];
          timeline.memory.push_back({.rank = rank,
                                     .time = change.time,
                                     .buffer_class = static_cast<BufferClass>(c),
                                     .tier = Tier::device,
                                     .live_bytes = shown[c]});
        }
    first = last;
  }
}

}  // namespace

Simulation Simulate(const SimulationRequest& q) {
  const schedule::Schedule& s = q.schedule;
  if (s.num_actions() == 0) throw UserError("the schedule '{}' has no actions: there is nothing to simulate", s.name);
  const bool shared = q.resources != nullptr && !q.resources->resources().empty();
  const Replay<double> replay = Summarise(
      s, shared ? TimesWithContention(s, q.costs, *q.resources, q.transport) : TimesInOrder(s, q.costs, q.transport));
  Simulation result;
  result.timeline = ToTimeline(s, replay, q.title);
  result.makespan = replay.makespan;
  result.bubble_fraction = replay.bubble_fraction;
  result.actions = replay.actions;
  for (Event& event : result.timeline.events) {
    if (event.action.key.kind == Kind::send) {
      ++result.messages;
      result.message_bytes += event.bytes;
    }
    if (!q.costs.Extrapolated(s, event.rank, event.action)) continue;
    event.provenance = schedule::Provenance::extrapolated;
    ++result.extrapolated;
  }
  if (q.memory != nullptr) AddMemory(*q.memory, result.timeline);
  return result;
}

}  // namespace penstock::simulate
