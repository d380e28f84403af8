#include "comm/threads/thread_communicator.h"

#include <algorithm>

#include "comm/threads/channel.h"

namespace penstock::comm {

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<World> world, int rank)
    : world_(std::move(world)), rank_(rank), namer_(std::make_shared<const TagNamer>(&PlainTagName)) {
  MakeWorld();
}

int ThreadCommunicator::GroupId(const std::vector<int>& ranks, const std::string& name) {
  GroupQueue* queue = world_->group(ranks, name);
  auto at = std::find(queues_.begin(), queues_.end(), queue);
  if (at == queues_.end()) at = queues_.insert(queues_.end(), queue);
  return static_cast<int>(at - queues_.begin());
}

void ThreadCommunicator::CheckAlive(const char* doing) const {
  if (world_->failed()) world_->ThrowFailure(rank_, doing);
}

void ThreadCommunicator::PostSend(int peer, const Tag& tag, std::vector<at::Tensor> tensors) {
  world_->channel(rank_, peer).Send(tag, std::move(tensors), namer_);
}

WorkPtr ThreadCommunicator::PostRecv(int peer, const Tag& tag) {
  auto work = std::make_shared<RecvWork>(world_, rank_, peer, tag, namer_);
  world_->channel(peer, rank_).Receive(work);
  return work;
}

WorkPtr ThreadCommunicator::PostCollective(const Group& group, Post post) {
  GroupQueue* queue = queues_[group.id()];
  const CommKind kind = post.signature.kind;
  const Tag tag = post.signature.tag;
  auto rendezvous = queue->Add(group.rank(), std::move(post), namer_);
  return std::make_shared<CollectiveWork>(world_, queue, std::move(rendezvous), rank_, group.rank(), kind, tag, namer_);
}

bool ThreadCommunicator::Poll() {
  bool worked = false;
  for (GroupQueue* queue : queues_) {
    const auto& ranks = queue->ranks();
    if (std::binary_search(ranks.begin(), ranks.end(), rank_)) worked |= queue->Help();
  }
  return worked;
}

RankStatus ThreadCommunicator::StatusOf(int rank) const {
  PENSTOCK_CHECK(rank >= 0 && rank < size(), "rank {} in a world of {}", rank, size());
  return world_->status(rank).Get();
}

void ThreadCommunicator::SetTagNamer(TagNamer namer) { namer_ = std::make_shared<const TagNamer>(std::move(namer)); }

}  // namespace penstock::comm
