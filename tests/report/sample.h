// tests/report/sample.h
//
// A pipeline with messages, reduction and update as the passes make it, its replay, and what a run of it might have
// measured: waits as the executor writes them, noise, a slower stage, memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "report/small_timeline.h"
#include "schedule/operators.h"

namespace penstock::report {

// `seconds` is the length of a unit of time.
inline schedule::Timeline Scaled(schedule::Timeline t, double seconds) {
  for (schedule::Event& e : t.events) {
    e.start *= seconds;
    e.end *= seconds;
    e.waited *= seconds;
  }
  return t;
}

// Every compute action of `t` with a send to and a receive on the rank that needs it, `transfer` apart, as if posted
// when the producer ended. Needs a chain of stages, each on one rank.
inline void AddMessages(schedule::Timeline& t, const schedule::Schedule& s, double transfer, int64_t bytes) {
  using schedule::Kind;
  const auto compute = t.events;
  std::vector<int32_t> next(t.num_ranks, 100000);
  for (const schedule::Event& e : compute) {
    const auto& k = e.action.key;
    const bool forward = k.kind == Kind::forward;
    if (!forward && k.kind != Kind::backward && k.kind != Kind::backward_input) continue;
    const int to = k.unit.stage + (forward ? 1 : -1);
    if (to < 0 || to >= s.num_stages()) continue;
    const int32_t rank = s.route.rank_of(to, k.micro_batch);
    if (rank == e.rank) continue;
    const int edge = forward ? s.graph.outputs(k.unit.stage)[0] : s.graph.inputs(k.unit.stage)[0];
    for (const bool sends : {true, false}) {
      schedule::Event m;
      m.action.key = k;
      m.action.key.kind = sends ? Kind::send : Kind::recv;
      m.action.key.op = schedule::FindOp(forward ? schedule::ops::kActivation : schedule::ops::kGradient);
      m.action.key.part = static_cast<int16_t>(edge);
      m.action.stream = schedule::DefaultStream(m.action.key.kind);
      m.action.peer_or_group = sends ? rank : e.rank;
      m.rank = sends ? e.rank : rank;
      m.index = next[m.rank]++;
      m.step = e.step;
      m.start = e.end;
      m.end = e.end + transfer;
      m.bytes = bytes;
      m.provenance = e.provenance;
      t.events.push_back(m);
    }
  }
}

// Live activations and the persistent classes of every rank.
inline void AddMemory(schedule::Timeline& t, int64_t unit) {
  for (int32_t r = 0; r < t.num_ranks; ++r) {
    double start = 0;
    for (const schedule::Event& e : t.events) start = std::min(start, e.start);
    t.memory.push_back({r, start, BufferClass::parameter, Tier::device, 5 * unit});
    t.memory.push_back({r, start, BufferClass::optimizer_state, Tier::device, 10 * unit});
    int64_t live = 0;
    bool gradient = false;
    for (const schedule::Event& e : t.events) {
      if (e.rank != r) continue;
      if (e.action.key.kind == schedule::Kind::forward)
        t.memory.push_back({r, e.start, BufferClass::activation, Tier::device, unit * ++live});
      if (HalvesOf(e.action.key.kind) & schedule::kWeightHalf) {
        if (!gradient) t.memory.push_back({r, e.start, BufferClass::gradient, Tier::device, 5 * unit});
        gradient = true;
        t.memory.push_back({r, e.end, BufferClass::activation, Tier::device, unit * --live});
      }
    }
  }
}

// What a run of `s` might have measured: a unit lasts `seconds`, stage `slow` takes `factor` times as long.
inline schedule::Timeline LikeMeasured(const schedule::Schedule& s, double seconds, double hop, int slow, double factor,
                                       int steps, uint64_t seed) {
  using schedule::Kind;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> noise(0.97, 1.05);
  schedule::Timeline t;
  t.title = "measured";
  t.num_ranks = s.num_ranks();
  double origin = 3.25;
  for (int step = 0; step < steps; ++step) {
    std::vector<double> free(s.num_ranks(), origin);
    std::vector<size_t> next(s.num_ranks(), 0);
    std::map<std::tuple<bool, int, int>, double> made;
    double last = origin;
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < s.num_ranks(); ++r)
        for (; next[r] < s.ranks[r].size(); ++next[r], moved = true) {
          const schedule::Action& a = s.ranks[r][next[r]];
          const int stage = a.key.unit.stage, m = a.key.micro_batch;
          const bool forward = a.key.kind == Kind::forward;
          double ready = free[r];
          const int from = forward ? stage - 1 : stage + 1;
          if (a.key.kind != Kind::backward_weight && from >= 0 && from < s.num_stages()) {
            const auto it = made.find({!forward, from, m});
            if (it == made.end()) break;
            ready = std::max(ready, it->second + (s.route.rank_of(from, m) == r ? 0 : hop * noise(random)));
          }
          schedule::Event e;
          e.action = a;
          e.rank = r;
          e.index = static_cast<int32_t>(next[r]);
          e.step = step;
          e.start = free[r];
          e.waited = ready - free[r];
          const double work = seconds * (forward || a.key.kind != Kind::backward ? 1 : 2) *
                              (stage == slow ? factor : 1) * noise(random) * (step == 0 ? 1.4 : 1);
          e.end = ready + work;
          free[r] = e.end + seconds * 0.01;
          last = std::max(last, e.end);
          if (forward || a.key.kind != Kind::backward_weight) made[{!forward, stage, m}] = e.end;
          t.events.push_back(e);
        }
    }
    origin = last + seconds;
  }
  std::stable_sort(t.events.begin(), t.events.end(),
                   [](const auto& a, const auto& b) { return a.rank != b.rank ? a.rank < b.rank : a.start < b.start; });
  return t;
}

}  // namespace penstock::report
