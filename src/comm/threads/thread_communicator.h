// src/comm/threads/thread_communicator.h
//
// The Communicator of one rank thread: checks arguments, counts traffic, and hands over to channels and group queues.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/threads/rendezvous.h"
#include "comm/threads/world.h"

namespace penstock::comm {

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<World> world, int rank);

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  std::string_view backend() const override { return "threads"; }
  const Group& world() const override { return all_; }
  Group CreateGroup(std::vector<int> ranks, std::string name) override;

  WorkPtr Send(int peer, const Tag& tag, std::vector<at::Tensor> tensors) override;
  WorkPtr Recv(int peer, const Tag& tag) override;

  WorkPtr AllReduceSum(const Group& group, const Tag& tag, at::Tensor data) override;
  WorkPtr ReduceScatterSum(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                           at::Tensor out) override;
  WorkPtr AllGather(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                    at::Tensor out) override;
  WorkPtr AllGatherV(const Group& group, const Tag& tag, at::Tensor data) override;
  WorkPtr AllToAllV(const Group& group, const Tag& tag, std::vector<at::Tensor> parts) override;
  WorkPtr Broadcast(const Group& group, const Tag& tag, int root, at::Tensor data) override;
  WorkPtr Barrier(const Group& group, const Tag& tag) override;
  WorkPtr AllReduceTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                        at::Tensor out) override;
  WorkPtr ReduceScatterTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                            std::vector<int64_t> bounds, at::Tensor out) override;
  bool Poll() override;

  void SetCurrent(std::string_view action) override { world_->status(rank_).Set(action); }
  void SetHostWork(bool now) override { world_->SetHostWork(rank_, now); }
  RankStatus StatusOf(int rank) const override;
  void SetTagNamer(TagNamer namer) override;

  const TrafficCounters& traffic() const override { return traffic_; }
  void ResetTraffic() override { traffic_ = {}; }

 private:
  void CheckAlive(const char* doing) const;
  void CheckMember(const Group& group) const;
  // Counts `bytes` to others in `messages` messages; nothing when there are none.
  void Count(CommKind kind, int64_t messages, int64_t bytes);
  WorkPtr PostCollective(const Group& group, Post post);
  WorkPtr PostTree(const Group& group, CommKind kind, const Tag& tag, Contributions nodes, int32_t n_leaves,
                   std::vector<int64_t> bounds, at::Tensor out);

  const std::shared_ptr<World> world_;
  const int rank_;
  NamerPtr namer_;
  std::vector<GroupQueue*> queues_;  // by Group::id()
  Group all_;
  TrafficCounters traffic_;
};

}  // namespace penstock::comm
