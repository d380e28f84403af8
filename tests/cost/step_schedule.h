// tests/cost/step_schedule.h
//
// A step of n ranks that all do the same, as a schedule with prices, for the replay: layers are stages in a chain,
// every rank computes its own micro-batch, collectives run on queues of groups that hold all ranks. Gradients are
// reduced by the operator `reduce`, whose effects make it wait for the backward; the operators of this file have no
// effects, what they wait for is written as explicit edges.
#pragma once

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "schedule/costs.h"
#include "schedule/operators.h"
#include "schedule/schedule.h"
#include "simulate/list_engine.h"

namespace penstock::cost {

inline constexpr const char* kTestCollective = "test.collective";
inline constexpr const char* kTestTask = "test.task";

template <typename Time>
class StepSchedule {
 public:
  StepSchedule(int ranks, int layers, int queues) : ranks_(ranks) {
    auto& s = schedule_;
    s.name = "step of one layer after the other";
    s.graph = schedule::StageGraph::Chain(layers);
    s.route.pipeline_size = 1;
    s.route.placements = {std::vector<int>(layers, 0)};
    for (int r = 0; r < ranks; ++r) s.route.replica_of.push_back(r);
    s.stage_options.resize(layers);
    s.groups.resize(queues);
    for (auto& group : s.groups) {
      group.resize(ranks);
      std::iota(group.begin(), group.end(), 0);
    }
    for (int l = 0; l < layers; ++l)
      s.holders.units.push_back({{0, static_cast<uint16_t>(l)}, {{static_cast<uint16_t>(l), 0}}, 0});
    s.ranks.resize(ranks);
  }

  // Each returns the index of the action, which is the same on all ranks; `after` are such indices.
  int Forward(int layer, Time duration, std::vector<int> after = {}) {
    return Add(schedule::Kind::forward, schedule::kNoOp, layer, 0, -1, duration, after);
  }
  int Backward(int layer, Time duration, std::vector<int> after = {}) {
    return Add(schedule::Kind::backward, schedule::kNoOp, layer, 0, -1, duration, after);
  }
  int Task(Time duration, std::vector<int> after = {}) {
    return Add(schedule::Kind::task, schedule::FindOp(kTestTask), 0, next_part_++, -1, duration, after);
  }
  int Reduce(int layer, int queue, Time duration, std::vector<int> after = {}) {
    return Add(schedule::Kind::collective, schedule::FindOp(schedule::ops::kReduce), layer, 0, queue, duration, after);
  }
  int Collective(int queue, Time duration, std::vector<int> after = {}) {
    return Add(schedule::Kind::collective, schedule::FindOp(kTestCollective), 0, next_part_++, queue, duration, after);
  }

  simulate::Replay<Time> Replay() const { return simulate::ReplayInOrder<Time>(schedule_, Prices(durations_)); }

 private:
  class Prices final : public schedule::ActionCosts<Time> {
   public:
    explicit Prices(const std::map<schedule::Key, Time>& durations) : durations_(durations) {}
    Time Duration(const schedule::Schedule&, int, const schedule::Action& action) const override {
      return durations_.at(WithoutMicroBatch(action.key));
    }
    Time Latency(const schedule::Schedule&, int, int, const schedule::Action&) const override { return Time(0); }

   private:
    const std::map<schedule::Key, Time>& durations_;
  };

  static schedule::Key WithoutMicroBatch(schedule::Key key) {
    key.micro_batch = -1;
    return key;
  }

  int Add(schedule::Kind kind, schedule::OpId op, int layer, int part, int queue, Time duration,
          const std::vector<int>& after) {
    schedule::Action a;
    a.key.kind = kind;
    a.key.op = op;
    a.key.unit.stage = static_cast<uint16_t>(layer);
    a.key.part = static_cast<int16_t>(part);
    a.peer_or_group = queue;
    a.stream = schedule::DefaultStream(kind);
    for (int r = 0; r < ranks_; ++r) {
      if (IsComputeKind(kind)) a.key.micro_batch = r;
      a.extra_edges = {static_cast<uint32_t>(schedule_.edges.size()), static_cast<uint16_t>(after.size())};
      for (const int index : after) schedule_.edges.push_back({r, index});
      schedule_.ranks[r].push_back(a);
    }
    durations_[WithoutMicroBatch(a.key)] = duration;
    return static_cast<int>(schedule_.ranks[0].size()) - 1;
  }

  int ranks_;
  int next_part_ = 0;
  schedule::Schedule schedule_;
  std::map<schedule::Key, Time> durations_;
};

}  // namespace penstock::cost
