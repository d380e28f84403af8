// src/comm/threads/channel.h
//
// The in-order message channel from one rank to another: the k-th send meets the k-th receive.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/common/tag_history.h"
#include "comm/communicator.h"
#include "comm/threads/world.h"

namespace penstock::comm {

class RecvWork : public Work, private Condition {
 public:
  RecvWork(std::shared_ptr<World> world, int rank, int peer, Tag tag, NamerPtr namer)
      : world_(std::move(world)), rank_(rank), peer_(peer), tag_(tag), namer_(std::move(namer)) {}
  bool Done() const override { return done_.load(std::memory_order_acquire); }
  void Wait() override;
  std::vector<at::Tensor> TakeTensors() override;

 private:
  friend class Channel;
  bool Ready() const override { return Done(); }
  int MissingRank() const override { return Done() ? -1 : peer_; }
  std::string Describe() const override;

  const std::shared_ptr<World> world_;
  const int rank_;
  const int peer_;
  const Tag tag_;
  const NamerPtr namer_;
  std::vector<at::Tensor> tensors_;  // written before done_
  std::atomic<bool> done_{false};
};

class Channel {
 public:
  Channel(World* world, int from, int to) : world_(world), from_(from), to_(to) {}

  // Called on rank `from`. `namer` puts tags into words if they do not match.
  void Send(const Tag& tag, std::vector<at::Tensor> tensors, const NamerPtr& namer);
  // Called on rank `to`.
  void Receive(std::shared_ptr<RecvWork> work);

  // What was never matched, as " ..." for a message; empty when all was.
  std::string Leftover();
  void Clear();

 private:
  struct Message {
    Tag tag;
    std::vector<at::Tensor> tensors;
  };
  // Matches what can be matched; true when a receive was completed. Fills `fault` when tags differ.
  bool Match(std::string& fault);

  World* const world_;
  const int from_;
  const int to_;
  std::mutex mutex_;
  std::deque<Message> messages_;  // at most one of the two is not empty
  std::deque<std::shared_ptr<RecvWork>> receives_;
  uint64_t matched_ = 0;
  TagHistory sent_, expected_;
  NamerPtr namer_;  // of the last send or receive
};

}  // namespace penstock::comm
