#include "simulate/contended_engine.h"

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "simulate/action_graph.h"
#include "simulate/stuck.h"

namespace penstock::simulate {

using schedule::Action;
using schedule::ActionRef;
using schedule::Kind;
using schedule::Schedule;

namespace {

// Demands come and go; what is left of their rounding is no demand.
constexpr double kRounding = 1 + 1e-12;

class Engine {
 public:
  Engine(const Schedule& schedule, const schedule::ActionCosts<double>& costs, const ResourceModel& model,
         schedule::Transport transport)
      : schedule_(schedule), costs_(costs), model_(model), graph_(schedule, transport) {
    users_.resize(model.resources().size());
    demand_.assign(model.resources().size(), 0.0);
  }

  Times<double> Run() {
    times_.resize(schedule_.num_ranks());
    for (int r = 0; r < schedule_.num_ranks(); ++r) times_[r].resize(schedule_.ranks[r].size());
    waiting_ = graph_.in_degrees();
    ready_.assign(graph_.num_nodes(), 0.0);
    arrived_.assign(graph_.num_nodes(), 0.0);
    for (uint32_t n = 0; n < waiting_.size(); ++n)
      if (waiting_[n] == 0) Release(n, 0.0);
    size_t ended = 0;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      if (event.process == kStart) {
        Enter(event.node);
      } else if (event.process == kEnd) {
        End(event.node, event.time);
        ++ended;
      } else if (processes_[event.process].version == event.version) {
        Leave(event.process);
        End(event.node, event.time);
        ++ended;
      }
    }
    if (ended != waiting_.size()) {
      std::vector<bool> done(waiting_.size());
      for (size_t n = 0; n < waiting_.size(); ++n) done[n] = waiting_[n] == 0;
      ThrowStuck(schedule_, graph_, done);
    }
    return std::move(times_);
  }

 private:
  // The start of a node with shared resources, the end of one without.
  static constexpr int32_t kStart = -1, kEnd = -2;

  struct Event {
    double time;
    uint32_t node;
    int32_t process;   // kStart, kEnd, or the process that may have ended
    uint32_t version;  // of the process's speed; older events are void
    // The earliest first, then by rank and list.
    bool operator<(const Event& o) const { return time != o.time ? time > o.time : node > o.node; }
  };

  // A node that runs on shared resources.
  struct Process {
    uint32_t node = 0;
    double left = 0;  // seconds at full speed
    double speed = 0;
    double since = 0;  // when `left` was right
    uint32_t version = 0;
    std::vector<ResourceUse> uses;
  };

  void Push(double time, uint32_t node, int32_t process, uint32_t version = 0) {
    events_.push({time, node, process, version});
  }

  const Action& At(uint32_t node) const { return schedule_.at(graph_.action_of(node)); }

  // Seconds at full speed; appends what it uses.
  double DurationOf(uint32_t node, std::vector<ResourceUse>& uses) const {
    if (!graph_.is_meeting(node)) {
      const int rank = graph_.action_of(node).rank;
      model_.AppendUses(schedule_, rank, At(node), uses);
      return costs_.Duration(schedule_, rank, At(node));
    }
    double longest = 0;
    for (const uint32_t member : graph_.members(node)) {
      const ActionRef ref = graph_.action_of(member);
      const Action& action = At(member);
      double duration = costs_.Duration(schedule_, ref.rank, action);
      if (action.key.kind == Kind::send) duration += costs_.Latency(schedule_, ref.rank, action.peer_or_group, action);
      longest = std::max(longest, duration);
      model_.AppendUses(schedule_, ref.rank, action, uses);
    }
    // Members may share a resource: it has them together.
    std::sort(uses.begin(), uses.end(),
              [](const ResourceUse& a, const ResourceUse& b) { return a.resource < b.resource; });
    size_t kept = 0;
    for (size_t i = 0; i < uses.size(); ++i) {
      if (kept > 0 && uses[kept - 1].resource == uses[i].resource)
        uses[kept - 1].demand += uses[i].demand;
      else
        uses[kept++] = uses[i];
    }
    uses.resize(kept);
    return longest;
  }

  // All that the node waits for is over at `time`. What shares nothing ends at a time that is known now; what does
  // share enters its resources when that time has come.
  void Release(uint32_t node, double time) {
    if (!graph_.is_meeting(node)) {
      const ActionRef ref = graph_.action_of(node);
      Interval<double>& t = times_[ref.rank][ref.index];
      const bool receives = schedule_.at(ref).key.kind == Kind::recv;
      t.start = receives ? ready_[node] : time;  // a receive was posted before its message came
      if (graph_.meets(node)) return Push(time, node, kEnd);
      if (receives)
        return Push(std::max(t.start + costs_.Duration(schedule_, ref.rank, schedule_.at(ref)), time), node, kEnd);
    }
    uses_.clear();
    const double duration = DurationOf(node, uses_);
    if (uses_.empty() || duration <= 0) return Push(time + duration, node, kEnd);
    Push(time, node, kStart);
  }

  void End(uint32_t node, double time) {
    if (graph_.is_meeting(node)) {
      for (const uint32_t member : graph_.members(node)) {
        const ActionRef ref = graph_.action_of(member);
        times_[ref.rank][ref.index].end = time;
      }
    } else if (!graph_.meets(node)) {
      const ActionRef ref = graph_.action_of(node);
      times_[ref.rank][ref.index].end = time;
    }
    for (const auto* edge = graph_.begin(node); edge != graph_.end(node); ++edge) {
      if (edge->crosses) {
        const ActionRef from = graph_.action_of(graph_.is_meeting(node) ? graph_.members(node).front() : node);
        const ActionRef to = graph_.action_of(edge->to);
        arrived_[edge->to] = std::max(
            arrived_[edge->to], time + costs_.Latency(schedule_, from.rank, to.rank, MessageOf(schedule_.at(from))));
      } else {
        ready_[edge->to] = std::max(ready_[edge->to], time);
      }
      if (--waiting_[edge->to] == 0) Release(edge->to, std::max(ready_[edge->to], arrived_[edge->to]));
    }
  }

  void Enter(uint32_t node) {
    std::vector<ResourceUse> uses;
    const double duration = DurationOf(node, uses);
    int32_t id;
    if (free_.empty()) {
      id = static_cast<int32_t>(processes_.size());
      processes_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    Process& p = processes_[id];
    p.node = node;
    p.left = duration;
    p.speed = 0;
    p.since = now_;
    p.uses = std::move(uses);
    for (const ResourceUse& use : p.uses) {
      users_[use.resource].push_back(id);
      demand_[use.resource] += use.demand;
    }
    Rebalance(p.uses, id);
  }

  void Leave(int32_t id) {
    Process& p = processes_[id];
    ++p.version;
    const std::vector<ResourceUse> uses = std::move(p.uses);
    for (const ResourceUse& use : uses) {
      auto& users = users_[use.resource];
      users.erase(std::find(users.begin(), users.end(), id));  // order of arrival stays
      demand_[use.resource] = users.empty() ? 0 : demand_[use.resource] - use.demand;
    }
    Rebalance(uses, -1);
    free_.push_back(id);
  }

  // The speeds of all that use one of these resources.
  void Rebalance(const std::vector<ResourceUse>& changed, int32_t entered) {
    touched_.clear();
    for (const ResourceUse& use : changed)
      touched_.insert(touched_.end(), users_[use.resource].begin(), users_[use.resource].end());
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const int32_t id : touched_) {
      Process& p = processes_[id];
      const double speed = SpeedOf(id);
      if (speed == p.speed && id != entered) continue;
      p.left = std::max(0.0, p.left - (now_ - p.since) * p.speed);
      p.since = now_;
      p.speed = speed;
      ++p.version;
      if (speed > 0) Push(now_ + p.left / speed, p.node, id, p.version);
    }
  }

  double SpeedOf(int32_t id) const {
    double speed = 1;
    for (const ResourceUse& use : processes_[id].uses) {
      const Resource& resource = model_.resources()[use.resource];
      if (resource.serial) {
        if (users_[use.resource].front() != id) return 0;
      } else if (demand_[use.resource] > resource.capacity * kRounding) {
        speed = std::min(speed, resource.capacity / demand_[use.resource]);
      }
    }
    return speed;
  }

  const Schedule& schedule_;
  const schedule::ActionCosts<double>& costs_;
  const ResourceModel& model_;
  ActionGraph graph_;
  Times<double> times_;
  double now_ = 0;
  std::vector<uint32_t> waiting_;
  std::vector<double> ready_, arrived_;
  std::priority_queue<Event> events_;
  std::vector<Process> processes_;
  std::vector<int32_t> free_;                // ids of processes that have ended
  std::vector<std::vector<int32_t>> users_;  // [resource] in order of arrival
  std::vector<double> demand_;               // [resource] of all users
  std::vector<int32_t> touched_;
  std::vector<ResourceUse> uses_;
};

}  // namespace

Times<double> TimesWithContention(const Schedule& schedule, const schedule::ActionCosts<double>& costs,
                                  const ResourceModel& resources, schedule::Transport transport) {
  for (const Resource& resource : resources.resources())
    PENSTOCK_CHECK(resource.capacity > 0, "resource '{}' has a capacity of {}", resource.name, resource.capacity);
  return Engine(schedule, costs, resources, transport).Run();
}

}  // namespace penstock::simulate
