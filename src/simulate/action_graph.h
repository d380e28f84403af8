// src/simulate/action_graph.h
//
// What every action of a schedule has to wait for, as a graph: the order of its stream, hazards, explicit edges,
// messages, and (where a schedule has no messages) the stage graph. Nodes are the actions, numbered rank by rank, then
// one meeting point per collective: its members lead to it, and what follows a member follows the meeting point.
// Transports (schedule/contract.h):
//   channelled  a stream per peer and direction, a queue per group; sends are buffered
//   eager       one in-order program per rank; sends are buffered
//   blocking    one in-order queue for all messages of a rank; a send and its receive meet like a collective
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::simulate {

class ActionGraph {
 public:
  struct Edge {
    uint32_t to = 0;
    bool crosses = false;  // a message between two ranks: latency applies
  };

  // UserError when messages or collectives do not match.
  explicit ActionGraph(const schedule::Schedule& schedule,
                       schedule::Transport transport = schedule::Transport::channelled);

  int64_t num_actions() const { return num_actions_; }
  int64_t num_nodes() const { return num_actions_ + static_cast<int64_t>(members_.size()); }
  uint32_t node_of(schedule::ActionRef ref) const { return first_of_rank_[ref.rank] + ref.index; }
  schedule::ActionRef action_of(uint32_t node) const;  // node < num_actions()
  bool is_meeting(uint32_t node) const { return node >= num_actions_; }
  // Nodes of the actions that meet: a collective's, or a send and its receive.
  const std::vector<uint32_t>& members(uint32_t meeting) const { return members_[meeting - num_actions_]; }

  // Does the action end at a meeting point?
  bool meets(uint32_t action) const { return finish(action) != action; }

  // Targets of a node's edges: [begin, end).
  const Edge* begin(uint32_t node) const { return edges_.data() + offsets_[node]; }
  const Edge* end(uint32_t node) const { return edges_.data() + offsets_[node + 1]; }
  // Edges into each node. Dependencies that nothing in the schedule fulfils count and never arrive.
  std::vector<uint32_t> in_degrees() const { return in_degrees_; }

  // Of [node], whether it was reached (what a member of a meeting waits for being over): whether it is over.
  std::vector<bool> Ended(const std::vector<bool>& done) const;
  // The blocked actions at the head of each rank and what each waits for, one a line, at most `limit`.
  std::string DescribeBlocked(const std::vector<bool>& done, size_t limit) const;

 private:
  struct Link {
    uint32_t from, to;
    bool crosses;
  };
  struct Missing {
    uint32_t node;
    std::string what;
  };

  void FindMeetings();
  void Meet(std::vector<uint32_t> nodes);
  void AddStreams();
  void AddMessages();
  void AddHazards();
  void AddExplicitEdges();
  void AddStageGraph();
  // The node after which an action is over.
  uint32_t finish(uint32_t action) const { return finish_.empty() ? action : finish_[action]; }
  void Connect(uint32_t action, uint32_t to, bool crosses = false) { links_.push_back({finish(action), to, crosses}); }
  void Finish();

  // Nodes of one ordered pair of ranks, in the order of their lists.
  struct Channel {
    int from = 0, to = 0;
    std::vector<uint32_t> sends, recvs;
  };

  const schedule::Schedule& schedule_;
  const schedule::Transport transport_;
  std::vector<Channel> channels_;
  uint32_t num_actions_ = 0;
  std::vector<uint32_t> first_of_rank_;  // [rank], and the total
  std::vector<int32_t> rank_of_;         // [action]
  std::vector<std::vector<uint32_t>> members_;
  std::vector<uint32_t> finish_;  // [action]; empty: without collectives
  std::vector<Link> links_;
  std::vector<Missing> missing_;
  std::vector<size_t> offsets_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> in_degrees_;
};

}  // namespace penstock::simulate
