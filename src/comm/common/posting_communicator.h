// src/comm/common/posting_communicator.h
//
// The half of a Communicator that no back end does differently: arguments are checked, traffic is counted by the
// formulas of comm/traffic.h, and what remains is a post. Errors: InternalError for bad arguments, before anything is
// posted.
#pragma once

#include <string>
#include <vector>

#include "comm/common/signature.h"
#include "comm/communicator.h"

namespace penstock::comm {

class PostingCommunicator : public Communicator {
 public:
  const Group& world() const final { return all_; }
  Group CreateGroup(std::vector<int> ranks, std::string name) final;

  WorkPtr Send(int peer, const Tag& tag, std::vector<at::Tensor> tensors) final;
  WorkPtr Recv(int peer, const Tag& tag) final;

  WorkPtr AllReduceSum(const Group& group, const Tag& tag, at::Tensor data) final;
  WorkPtr ReduceScatterSum(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                           at::Tensor out) final;
  WorkPtr AllGather(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                    at::Tensor out) final;
  WorkPtr AllGatherV(const Group& group, const Tag& tag, at::Tensor data) final;
  WorkPtr AllToAllV(const Group& group, const Tag& tag, std::vector<at::Tensor> parts) final;
  WorkPtr Broadcast(const Group& group, const Tag& tag, int root, at::Tensor data) final;
  WorkPtr Barrier(const Group& group, const Tag& tag) final;
  WorkPtr AllReduceTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                        at::Tensor out) final;
  WorkPtr ReduceScatterTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                            std::vector<int64_t> bounds, at::Tensor out) final;

  const TrafficCounters& traffic() const final { return traffic_; }
  void ResetTraffic() final { traffic_ = {}; }

 protected:
  // Makes world(); the last thing of a constructor, because it asks the back end.
  void MakeWorld();

  // ---- what a back end does ----
  // Throws when the world has failed. `doing`: what the caller wanted to begin.
  virtual void CheckAlive(const char* doing) const = 0;
  // The handle of the group, the same at every call with these ranks and this name.
  virtual int GroupId(const std::vector<int>& ranks, const std::string& name) = 0;
  // The tensors are contiguous, 64-byte aligned and without history, or undefined.
  virtual void PostSend(int peer, const Tag& tag, std::vector<at::Tensor> tensors) = 0;
  virtual WorkPtr PostRecv(int peer, const Tag& tag) = 0;
  // The caller is a member. AllToAllV: one input per member; broadcast: `out` alone; tree: inputs like nodes.
  virtual WorkPtr PostCollective(const Group& group, Post post) = 0;

 private:
  void CheckMember(const Group& group) const;
  // Counts `bytes` to others in `messages` messages; nothing when there are none.
  void Count(CommKind kind, int64_t messages, int64_t bytes);
  WorkPtr PostToGroup(const Group& group, Post post);
  WorkPtr PostTree(const Group& group, CommKind kind, const Tag& tag, Contributions nodes, int32_t n_leaves,
                   std::vector<int64_t> bounds, at::Tensor out);

  Group all_;
  TrafficCounters traffic_;
};

}  // namespace penstock::comm
