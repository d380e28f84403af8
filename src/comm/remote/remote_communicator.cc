#include "comm/remote/remote_communicator.h"

#include <utility>

namespace penstock::comm {

RemoteCommunicator::RemoteCommunicator(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)), namer_(shared_->namer()), self_(shared_->rank(), shared_->rank()) {
  MakeWorld();
}

void RemoteCommunicator::CheckAlive(const char* doing) const {
  if (shared_->failed()) shared_->ThrowFailure(rank(), doing);
}

int RemoteCommunicator::GroupId(const std::vector<int>& ranks, const std::string& name) {
  return group_ids_.emplace(std::pair(name, ranks), static_cast<int>(group_ids_.size())).first->second;
}

void RemoteCommunicator::CheckOrder(const std::string& fault) {
  if (!fault.empty()) shared_->FailWith(rank(), OrderMismatch(fault));
}

void RemoteCommunicator::PostSend(int peer, const Tag& tag, std::vector<at::Tensor> tensors) {
  if (peer != rank()) return shared_->Give(SendCommand{peer, tag, std::move(tensors)});
  auto message = std::make_shared<Incoming>();
  message->tag = tag;
  message->tensors = std::move(tensors);
  CheckOrder(self_.Arrive(std::move(message), namer_));
}

WorkPtr RemoteCommunicator::PostRecv(int peer, const Tag& tag) {
  auto work = std::make_shared<RemoteRecvWork>(shared_, peer, tag, namer_);
  if (peer == rank()) {
    CheckOrder(self_.Receive(work));
  } else {
    shared_->Give(RecvCommand{work});
  }
  return work;
}

WorkPtr RemoteCommunicator::PostCollective(const Group& group, Post post) {
  auto work = std::make_shared<RemoteCollectiveWork>(shared_, post.signature.kind, group, post.signature.tag, namer_);
  shared_->Give(CollectiveCommand{group, std::move(post), work});
  return work;
}

void RemoteCommunicator::SetHostWork(bool now) {
  shared_->SetPeerHostWork(rank(), now);
  shared_->Give(HostWorkCommand{now});
}

void RemoteCommunicator::SetTagNamer(TagNamer namer) {
  namer_ = std::make_shared<const TagNamer>(std::move(namer));
  shared_->SetNamer(namer_);
}

RankStatus RemoteCommunicator::StatusOf(int rank) const {
  PENSTOCK_CHECK(rank >= 0 && rank < size(), "rank {} in a world of {}", rank, size());
  return shared_->StatusOf(rank);
}

}  // namespace penstock::comm
