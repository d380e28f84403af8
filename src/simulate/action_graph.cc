#include "simulate/action_graph.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "schedule/effects.h"
#include "simulate/graph/hazards.h"

namespace penstock::simulate {

using schedule::Action;
using schedule::ActionRef;
using schedule::Kind;
using schedule::Schedule;
using schedule::Stream;
using schedule::Transport;

namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr size_t kMaxMissingNamed = 4;

bool IsMessage(const Action& a) { return a.key.kind == Kind::send || a.key.kind == Kind::recv; }

// Equal in everything but the direction.
bool SameMessage(const Action& send, const Action& recv) {
  schedule::Key key = recv.key;
  key.kind = Kind::send;
  return key == send.key;
}

}  // namespace

ActionGraph::ActionGraph(const Schedule& schedule, Transport transport) : schedule_(schedule), transport_(transport) {
  const int64_t total = schedule.num_actions();
  if (total >= std::numeric_limits<int32_t>::max())
    throw UserError("a schedule of {} actions is too large to replay; at most {}", total,
                    std::numeric_limits<int32_t>::max());
  num_actions_ = static_cast<uint32_t>(total);
  first_of_rank_.push_back(0);
  rank_of_.reserve(num_actions_);
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    rank_of_.insert(rank_of_.end(), schedule.ranks[rank].size(), rank);
    first_of_rank_.push_back(static_cast<uint32_t>(rank_of_.size()));
  }

  bool messages = false, only_compute = true;
  for (const auto& list : schedule.ranks) {
    for (const Action& a : list) {
      messages |= IsMessage(a);
      only_compute &= a.stream == Stream::compute;
    }
  }
  links_.reserve(static_cast<size_t>(total) * 3);
  FindMeetings();
  AddStreams();
  AddMessages();
  AddExplicitEdges();
  if (!only_compute && transport != Transport::eager) AddHazards();  // inside one lane its order says it all
  if (!messages) AddStageGraph();
  Finish();
}

ActionRef ActionGraph::action_of(uint32_t node) const {
  const int32_t rank = rank_of_[node];
  return {rank, static_cast<int32_t>(node - first_of_rank_[rank])};
}

// Sends and receives of every channel; k-th collective of a group on all its members. Meeting points come before edges:
// what follows a member follows its meeting point.
void ActionGraph::FindMeetings() {
  std::unordered_map<uint64_t, size_t> channel_of;
  const auto channel = [&](int from, int to) -> Channel& {
    const uint64_t pair = uint64_t{static_cast<uint32_t>(from)} << 32 | static_cast<uint32_t>(to);
    const auto [it, is_new] = channel_of.try_emplace(pair, channels_.size());
    if (is_new) channels_.push_back({.from = from, .to = to, .sends = {}, .recvs = {}});
    return channels_[it->second];
  };
  std::vector<std::vector<std::vector<uint32_t>>> queues(schedule_.groups.size());  // [group][member][k]
  for (size_t g = 0; g < queues.size(); ++g) queues[g].resize(schedule_.groups[g].size());

  for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
    const auto& list = schedule_.ranks[rank];
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      const Action& a = list[i];
      const uint32_t node = node_of({rank, i});
      if (a.key.kind == Kind::send) channel(rank, a.peer_or_group).sends.push_back(node);
      if (a.key.kind == Kind::recv) channel(a.peer_or_group, rank).recvs.push_back(node);
      if (a.key.kind != Kind::collective) continue;
      if (a.peer_or_group < 0 || a.peer_or_group >= static_cast<int>(queues.size()))
        throw UserError("rank {}: {} names group {}, which the schedule does not have", rank, ToString(a),
                        a.peer_or_group);
      const auto& group = schedule_.groups[a.peer_or_group];
      const auto member = std::lower_bound(group.begin(), group.end(), rank);  // groups ascend
      if (member == group.end() || *member != rank)
        throw UserError("rank {}: {} is a collective of group {}, to which the rank does not belong", rank, ToString(a),
                        a.peer_or_group);
      queues[a.peer_or_group][member - group.begin()].push_back(node);
    }
  }

  for (size_t g = 0; g < queues.size(); ++g) {
    const auto& queue = queues[g];
    if (queue.empty()) continue;
    for (size_t k = 0; k < queue[0].size(); ++k) {
      std::vector<uint32_t> meet;
      for (const auto& member : queue) {
        if (member.size() != queue[0].size())
          throw UserError("group {}: rank {} issues {} collectives, rank {} issues {}", g, schedule_.groups[g][0],
                          queue[0].size(), schedule_.groups[g][&member - queue.data()], member.size());
        const Action& mine = schedule_.at(action_of(member[k]));
        const Action& first = schedule_.at(action_of(queue[0][k]));
        if (mine.key != first.key)
          throw UserError("group {}: collective {} is {} on rank {} but {} on rank {}", g, k, ToString(first),
                          schedule_.groups[g][0], ToString(mine), schedule_.groups[g][&member - queue.data()]);
        meet.push_back(member[k]);
      }
      Meet(std::move(meet));
    }
  }
  if (transport_ != Transport::blocking) return;
  for (const Channel& c : channels_)
    for (size_t k = 0; k < std::min(c.sends.size(), c.recvs.size()); ++k) Meet({c.sends[k], c.recvs[k]});
}

void ActionGraph::Meet(std::vector<uint32_t> nodes) {
  if (finish_.empty()) {
    finish_.resize(num_actions_);
    for (uint32_t n = 0; n < num_actions_; ++n) finish_[n] = n;
  }
  const uint32_t meeting = num_actions_ + static_cast<uint32_t>(members_.size());
  for (const uint32_t node : nodes) {
    links_.push_back({node, meeting, false});
    finish_[node] = meeting;
  }
  members_.push_back(std::move(nodes));
}

void ActionGraph::AddStreams() {
  struct Lane {
    Stream stream;
    int32_t instance;
    uint32_t last;
  };
  std::vector<Lane> lanes;  // of the rank; few
  for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
    const auto& list = schedule_.ranks[rank];
    lanes.clear();
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      const uint32_t node = node_of({rank, i});
      Stream stream = transport_ == Transport::eager ? Stream::compute : list[i].stream;
      int32_t instance =
          stream >= Stream::send_channel ? list[i].peer_or_group : -1;  // compute, host, copies: one each
      if (transport_ == Transport::blocking && stream >= Stream::send_channel) {
        stream = Stream::send_channel;
        instance = -1;
      }
      const auto lane = std::find_if(lanes.begin(), lanes.end(),
                                     [&](const Lane& l) { return l.stream == stream && l.instance == instance; });
      if (lane == lanes.end()) {
        lanes.push_back({stream, instance, node});
      } else {
        Connect(lane->last, node);
        lane->last = node;
      }
    }
  }
}

void ActionGraph::AddMessages() {
  for (const Channel& c : channels_) {
    const size_t pairs = std::min(c.sends.size(), c.recvs.size());
    for (size_t k = 0; k < pairs; ++k) {
      const Action& send = schedule_.at(action_of(c.sends[k]));
      const Action& recv = schedule_.at(action_of(c.recvs[k]));
      if (!SameMessage(send, recv))
        throw UserError("channel {} -> {}: message {} is sent as {} but received as {}", c.from, c.to, k,
                        ToString(send), ToString(recv));
      if (transport_ != Transport::blocking) Connect(c.sends[k], c.recvs[k], /*crosses=*/true);
    }
    if (c.sends.size() > pairs)
      throw UserError("rank {}: {} has no receive on rank {}", c.from,
                      ToString(schedule_.at(action_of(c.sends[pairs]))), c.to);
    for (size_t k = pairs; k < c.recvs.size(); ++k)
      missing_.push_back({c.recvs[k], fmt::format("its send, which rank {} does not issue", c.from)});
  }
}

void ActionGraph::AddExplicitEdges() {
  for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
    const auto& list = schedule_.ranks[rank];
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      const auto [first, count] = list[i].extra_edges;
      for (uint32_t e = first; e < first + count; ++e) {
        const ActionRef before = schedule_.edges.at(e);
        Connect(node_of(before), node_of({rank, i}), before.rank != rank);
      }
    }
  }
}

void ActionGraph::AddHazards() {
  HazardFinder hazards(schedule_);
  for (int rank = 0; rank < schedule_.num_ranks(); ++rank)
    for (const auto& [before, after] : hazards.Of(rank)) Connect(node_of({rank, before}), node_of({rank, after}));
}

void ActionGraph::AddStageGraph() {
  const int stages = schedule_.num_stages(), micro_batches = schedule_.num_micro_batches();
  // Nodes of the first visit in this step, [stage * M + micro-batch].
  std::vector<uint32_t> forward(size_t(stages) * micro_batches, kNone), input(forward), weight(forward);
  const auto slot = [&](const Action& a) { return size_t(a.key.unit.stage) * micro_batches + a.key.micro_batch; };
  const auto visit = [&](auto use) {
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank)
      for (int i = 0; i < static_cast<int>(schedule_.ranks[rank].size()); ++i) {
        const Action& a = schedule_.ranks[rank][i];
        if (!IsComputeKind(a.key.kind) || a.key.round != 0 || a.key.step != 0) continue;
        PENSTOCK_CHECK(a.key.unit.stage < stages && a.key.micro_batch >= 0 && a.key.micro_batch < micro_batches,
                       "{} in a schedule of {} stages and {} micro-batches", ToString(a), stages, micro_batches);
        use(rank, node_of({rank, i}), a);
      }
  };
  visit([&](int rank, uint32_t node, const Action& a) {
    const auto put = [&](std::vector<uint32_t>& nodes) {
      if (nodes[slot(a)] != kNone) throw UserError("rank {}: {} appears twice in the step", rank, ToString(a));
      nodes[slot(a)] = node;
    };
    if (a.key.kind == Kind::forward) put(forward);
    if (HalvesOf(a.key.kind) & schedule::kInputHalf) put(input);
    if (a.key.kind == Kind::backward_weight) put(weight);
  });
  visit([&](int rank, uint32_t node, const Action& a) {
    const int m = a.key.micro_batch;
    const auto wait = [&](const std::vector<uint32_t>& nodes, int stage, std::string_view what) {
      const uint32_t other = nodes[size_t(stage) * micro_batches + m];
      if (other == kNone)
        missing_.push_back({node, fmt::format("{} {}.{}, which no rank runs", what, stage, m)});
      else
        Connect(other, node, action_of(other).rank != rank);
    };
    if (a.key.kind == Kind::forward)
      for (const int e : schedule_.graph.inputs(a.key.unit.stage))
        wait(forward, schedule_.graph.edges()[e].from, "forward");
    if (a.key.kind == Kind::recompute) wait(forward, a.key.unit.stage, "forward");
    if (HalvesOf(a.key.kind) & schedule::kInputHalf) {
      wait(forward, a.key.unit.stage, "forward");
      for (const int e : schedule_.graph.outputs(a.key.unit.stage))
        wait(input, schedule_.graph.edges()[e].to, "backward");
    }
    if (a.key.kind == Kind::backward_weight) wait(input, a.key.unit.stage, "backward_input");
  });
}

// Edges grouped by origin.
void ActionGraph::Finish() {
  offsets_.assign(num_nodes() + 1, 0);
  in_degrees_.assign(num_nodes(), 0);
  for (const Link& link : links_) {
    ++offsets_[link.from + 1];
    ++in_degrees_[link.to];
  }
  for (const Missing& m : missing_) ++in_degrees_[m.node];
  for (size_t n = 1; n < offsets_.size(); ++n) offsets_[n] += offsets_[n - 1];
  edges_.resize(links_.size());
  std::vector<size_t> next(offsets_.begin(), offsets_.end() - 1);
  for (const Link& link : links_) edges_[next[link.from]++] = {link.to, link.crosses};
}

std::vector<bool> ActionGraph::Ended(const std::vector<bool>& done) const {
  std::vector<bool> ended = done;
  for (size_t m = 0; m < members_.size(); ++m)
    if (!done[num_actions_ + m])
      for (const uint32_t node : members_[m]) ended[node] = false;
  return ended;
}

std::string ActionGraph::DescribeBlocked(const std::vector<bool>& done, size_t limit) const {
  const std::vector<bool> ended = Ended(done);
  const auto name = [&](uint32_t node) {
    const ActionRef ref = action_of(is_meeting(node) ? members(node).front() : node);
    return fmt::format("{} on rank {}", ToString(schedule_.at(ref)), ref.rank);
  };
  // A blocked action is worth naming when its stream has come to it: what it waits for is then the fault.
  std::string text;
  size_t named = 0, blocked = 0;
  for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
    const auto begin = first_of_rank_[rank], end = first_of_rank_[rank + 1];
    const auto head = std::find(ended.begin() + begin, ended.begin() + end, false);
    if (head == ended.begin() + end) continue;
    ++blocked;
    if (named == limit) continue;
    ++named;
    const uint32_t node = static_cast<uint32_t>(head - ended.begin());
    text += fmt::format("\n  rank {}: {} waits for", rank, ToString(schedule_.at(action_of(node))));
    bool first = true;
    for (const Missing& m : missing_)
      if (m.node == node) text += std::exchange(first, false) ? " " + m.what : ", " + m.what;
    for (const Link& link : links_)
      if (link.to == node && !done[link.from])
        text += fmt::format("{}{}", std::exchange(first, false) ? " " : ", ", name(link.from));
    if (done[node] && meets(node)) {  // it stands there; others do not
      size_t missing = 0;
      for (const uint32_t other : members(finish(node))) {
        if (done[other] || ++missing > kMaxMissingNamed) continue;
        text += fmt::format("{}{}", std::exchange(first, false) ? " " : ", ", name(other));
      }
      if (missing > kMaxMissingNamed) text += fmt::format(" and {} more", missing - kMaxMissingNamed);
    }
  }
  if (blocked > named) text += fmt::format("\n  and {} more ranks", blocked - named);
  return text;
}

}  // namespace penstock::simulate
