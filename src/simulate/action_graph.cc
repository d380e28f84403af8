#include "simulate/action_graph.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "schedule/effects.h"

namespace penstock::simulate {

using schedule::Action;
using schedule::ActionRef;
using schedule::BufferId;
using schedule::Kind;
using schedule::Schedule;
using schedule::Stream;

namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

bool IsMessage(const Action& a) { return a.key.kind == Kind::send || a.key.kind == Kind::recv; }

// Equal in everything but the direction.
bool SameMessage(const Action& send, const Action& recv) {
  schedule::Key key = recv.key;
  key.kind = Kind::send;
  return key == send.key;
}

}  // namespace

ActionGraph::ActionGraph(const Schedule& schedule) : schedule_(schedule) {
  const int64_t total = schedule.num_actions();
  if (total >= std::numeric_limits<int32_t>::max())
    throw UserError("a schedule of {} actions is too large to replay; at most {}", total,
                    std::numeric_limits<int32_t>::max());
  num_actions_ = static_cast<uint32_t>(total);
  first_of_rank_.push_back(0);
  for (const auto& list : schedule.ranks) first_of_rank_.push_back(first_of_rank_.back() + list.size());

  bool messages = false, only_compute = true;
  for (const auto& list : schedule.ranks) {
    for (const Action& a : list) {
      messages |= IsMessage(a);
      only_compute &= a.stream == Stream::compute;
    }
  }
  AddStreamsAndMessages();
  AddExplicitEdges();
  if (!only_compute) AddHazards();  // inside one stream its order says it all
  if (!messages) AddStageGraph();
  Finish();
}

ActionRef ActionGraph::action_of(uint32_t node) const {
  const auto it = std::upper_bound(first_of_rank_.begin(), first_of_rank_.end(), node) - 1;
  return {static_cast<int32_t>(it - first_of_rank_.begin()), static_cast<int32_t>(node - *it)};
}

// Order inside a stream; k-th send to k-th receive of a channel; k-th collective of a group on all its members.
void ActionGraph::AddStreamsAndMessages() {
  using Channel = std::pair<int, int>;  // from, to
  std::map<Channel, std::vector<uint32_t>> sends, recvs;
  std::vector<std::vector<std::vector<uint32_t>>> queues(schedule_.groups.size());  // [group][member][k]
  for (size_t g = 0; g < queues.size(); ++g) queues[g].resize(schedule_.groups[g].size());

  for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
    const auto& list = schedule_.ranks[rank];
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      const Action& a = list[i];
      const uint32_t node = node_of({rank, i});
      if (a.key.kind == Kind::send) sends[{rank, a.peer_or_group}].push_back(node);
      if (a.key.kind == Kind::recv) recvs[{a.peer_or_group, rank}].push_back(node);
      if (a.key.kind != Kind::collective) continue;
      if (a.peer_or_group < 0 || a.peer_or_group >= static_cast<int>(queues.size()))
        throw UserError("rank {}: {} names group {}, which the schedule does not have", rank, ToString(a),
                        a.peer_or_group);
      const auto& group = schedule_.groups[a.peer_or_group];
      const auto member = std::find(group.begin(), group.end(), rank);
      if (member == group.end())
        throw UserError("rank {}: {} is a collective of group {}, to which the rank does not belong", rank, ToString(a),
                        a.peer_or_group);
      queues[a.peer_or_group][member - group.begin()].push_back(node);
    }
  }

  // Meeting points first: what follows a collective follows its meeting point.
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
      if (finish_.empty()) {
        finish_.resize(num_actions_);
        for (uint32_t n = 0; n < num_actions_; ++n) finish_[n] = n;
      }
      const uint32_t meeting = num_actions_ + static_cast<uint32_t>(members_.size());
      for (const uint32_t node : meet) {
        links_.push_back({node, meeting, false});
        finish_[node] = meeting;
      }
      members_.push_back(std::move(meet));
    }
  }

  for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
    const auto& list = schedule_.ranks[rank];
    uint32_t last_compute = kNone;
    std::map<std::pair<Stream, int32_t>, uint32_t> last;  // of the other streams, by instance
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      const uint32_t node = node_of({rank, i});
      const int32_t instance =
          list[i].stream >= Stream::send_channel ? list[i].peer_or_group : -1;  // compute, host and copies: one each
      uint32_t& previous = list[i].stream == Stream::compute
                               ? last_compute
                               : last.try_emplace({list[i].stream, instance}, kNone).first->second;
      if (previous != kNone) Connect(previous, node);
      previous = node;
    }
  }

  for (const auto& [channel, nodes] : sends) {
    const auto& other = recvs[channel];
    const size_t pairs = std::min(nodes.size(), other.size());
    for (size_t k = 0; k < pairs; ++k) {
      const Action& send = schedule_.at(action_of(nodes[k]));
      const Action& recv = schedule_.at(action_of(other[k]));
      if (!SameMessage(send, recv))
        throw UserError("channel {} -> {}: message {} is sent as {} but received as {}", channel.first, channel.second,
                        k, ToString(send), ToString(recv));
      Connect(nodes[k], other[k], /*crosses=*/true);
    }
    if (nodes.size() > other.size())
      throw UserError("rank {}: {} has no receive on rank {}", channel.first,
                      ToString(schedule_.at(action_of(nodes[pairs]))), channel.second);
  }
  for (const auto& [channel, nodes] : recvs) {
    const auto it = sends.find(channel);
    const size_t sent = it == sends.end() ? 0 : it->second.size();
    for (size_t k = sent; k < nodes.size(); ++k)
      missing_.push_back({nodes[k], fmt::format("its send, which rank {} does not issue", channel.first)});
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

// Read after write, write after read, write after write, in program order of each rank.
void ActionGraph::AddHazards() {
  struct Users {
    uint32_t writer = kNone;
    std::vector<uint32_t> readers;  // since the last write
  };
  std::vector<schedule::Effect> effects;
  std::vector<uint32_t> before;
  for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
    std::unordered_map<BufferId, Users> buffers;
    const auto& list = schedule_.ranks[rank];
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      const uint32_t node = node_of({rank, i});
      effects.clear();
      before.clear();
      AppendEffects(schedule_, rank, list[i], effects);
      for (const schedule::Effect& effect : effects) {
        Users& users = buffers[effect.buffer];
        if (users.writer != kNone && users.writer != node) before.push_back(users.writer);
        if (effect.access == schedule::Access::read) {
          users.readers.push_back(node);
          continue;
        }
        for (const uint32_t reader : users.readers)
          if (reader != node) before.push_back(reader);
        users.readers.clear();
        users.writer = node;
      }
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      for (const uint32_t b : before) {
        // Neighbours in the compute stream are ordered already.
        const ActionRef ref = action_of(b);
        const bool ordered = list[ref.index].stream == Stream::compute && list[i].stream == Stream::compute;
        if (!ordered) Connect(b, node);
      }
    }
  }
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

std::string ActionGraph::DescribeBlocked(const std::vector<bool>& done, size_t limit) const {
  const auto name = [&](uint32_t node) {
    const ActionRef ref = action_of(is_meeting(node) ? members(node).front() : node);
    return fmt::format("{} on rank {}", ToString(schedule_.at(ref)), ref.rank);
  };
  // A blocked action is worth naming when its stream has come to it: what it waits for is then the fault.
  std::string text;
  size_t named = 0, blocked = 0;
  for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
    const auto begin = first_of_rank_[rank], end = first_of_rank_[rank + 1];
    const auto head = std::find(done.begin() + begin, done.begin() + end, false);
    if (head == done.begin() + end) continue;
    ++blocked;
    if (named == limit) continue;
    ++named;
    const uint32_t node = static_cast<uint32_t>(head - done.begin());
    text += fmt::format("\n  rank {}: {} waits for", rank, ToString(schedule_.at(action_of(node))));
    bool first = true;
    for (const Missing& m : missing_)
      if (m.node == node) text += std::exchange(first, false) ? " " + m.what : ", " + m.what;
    for (const Link& link : links_)
      if (link.to == node && !done[link.from])
        text += fmt::format("{}{}", std::exchange(first, false) ? " " : ", ", name(link.from));
    if (first) text += " the other members of its group";
  }
  if (blocked > named) text += fmt::format("\n  and {} more ranks", blocked - named);
  return text;
}

}  // namespace penstock::simulate
