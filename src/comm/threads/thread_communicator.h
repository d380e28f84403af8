// src/comm/threads/thread_communicator.h
//
// The Communicator of one rank thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/common/posting_communicator.h"
#include "comm/threads/group_queue.h"
#include "comm/threads/world.h"

namespace penstock::comm {

class ThreadCommunicator final : public PostingCommunicator {
 public:
  ThreadCommunicator(std::shared_ptr<World> world, int rank);

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  std::string_view backend() const override { return "threads"; }
  bool Poll() override;

  void SetCurrent(std::string_view action) override { world_->status(rank_).Set(action); }
  void SetHostWork(bool now) override { world_->SetHostWork(rank_, now); }
  RankStatus StatusOf(int rank) const override;
  void SetTagNamer(TagNamer namer) override;

 private:
  void CheckAlive(const char* doing) const override;
  int GroupId(const std::vector<int>& ranks, const std::string& name) override;
  void PostSend(int peer, const Tag& tag, std::vector<at::Tensor> tensors) override;
  WorkPtr PostRecv(int peer, const Tag& tag) override;
  WorkPtr PostCollective(const Group& group, Post post) override;

  const std::shared_ptr<World> world_;
  const int rank_;
  NamerPtr namer_;
  std::vector<GroupQueue*> queues_;  // by Group::id()
};

}  // namespace penstock::comm
