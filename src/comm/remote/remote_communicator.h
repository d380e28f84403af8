// src/comm/remote/remote_communicator.h
//
// The Communicator of one rank whose peers are reached over a Transport: everything becomes a command for the progress
// thread, but what a rank sends itself.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/common/posting_communicator.h"
#include "comm/remote/in_channel.h"
#include "comm/remote/shared.h"

namespace penstock::comm {

class RemoteCommunicator final : public PostingCommunicator {
 public:
  explicit RemoteCommunicator(std::shared_ptr<Shared> shared);

  int rank() const override { return shared_->rank(); }
  int size() const override { return shared_->size(); }
  std::string_view backend() const override { return shared_->options().backend; }
  // The progress thread does it.
  bool Poll() override { return false; }

  void SetCurrent(std::string_view action) override { shared_->status().Set(action); }
  void SetHostWork(bool now) override;
  RankStatus StatusOf(int rank) const override;
  void SetTagNamer(TagNamer namer) override;

  // What it sent itself and never received, as " ..."; empty when nothing.
  std::string Leftover() const { return self_.Leftover(shared_->namer()); }

 private:
  void CheckAlive(const char* doing) const override;
  int GroupId(const std::vector<int>& ranks, const std::string& name) override;
  void PostSend(int peer, const Tag& tag, std::vector<at::Tensor> tensors) override;
  WorkPtr PostRecv(int peer, const Tag& tag) override;
  WorkPtr PostCollective(const Group& group, Post post) override;
  void CheckOrder(const std::string& fault);

  const std::shared_ptr<Shared> shared_;
  NamerPtr namer_;  // as the shared one, without its lock
  InChannel self_;
  std::map<std::pair<std::string, std::vector<int>>, int> group_ids_;
};

}  // namespace penstock::comm
