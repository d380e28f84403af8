// src/comm/remote/in_channel.h
//
// The receiving end of the in-order channel from one rank to another: the k-th message meets the k-th receive. One
// thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/common/tag_history.h"
#include "comm/remote/works.h"

namespace penstock::comm {

// A message whose header has arrived.
struct Incoming {
  Tag tag;
  std::vector<at::Tensor> tensors;
  int missing_parts = 0;                 // payloads that are still on their way
  std::shared_ptr<RemoteRecvWork> work;  // once it is matched

  // A payload is here.
  void PartArrived();
  // Gives the tensors to the receive when both are there.
  void Deliver();
};

class InChannel {
 public:
  InChannel(int from, int to) : from_(from), to_(to) {}

  // What is wrong when the tags of the two do not match; empty when nothing is.
  [[nodiscard]] std::string Arrive(std::shared_ptr<Incoming> message, const NamerPtr& namer);
  [[nodiscard]] std::string Receive(std::shared_ptr<RemoteRecvWork> work);
  // What was never matched, as " ..." for a message; empty when all was.
  std::string Leftover(const NamerPtr& namer) const;

 private:
  std::string Match(const NamerPtr& namer);

  const int from_;
  const int to_;
  std::deque<std::shared_ptr<Incoming>> messages_;  // at most one of the two is not empty
  std::deque<std::shared_ptr<RemoteRecvWork>> receives_;
  uint64_t matched_ = 0;
  TagHistory sent_, expected_;
};

}  // namespace penstock::comm
