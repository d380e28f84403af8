// src/comm/threads/group_queue.h
//
// The in-order queue of collectives of one group: they are matched by position and run one after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/threads/rendezvous.h"
#include "comm/threads/world.h"

namespace penstock::comm {

class GroupQueue {
 public:
  GroupQueue(World* world, std::vector<int> ranks, std::string name);

  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }
  const std::string& label() const { return label_; }

  // The next collective of the member at `position` of the group.
  std::shared_ptr<Rendezvous> Add(int position, Post post, const NamerPtr& namer);
  // Runs shards of the collective at the front when all have posted it; true when it ran any.
  bool Help();
  // Changes whenever a collective becomes ready to run.
  uint64_t activations() const { return activations_.load(std::memory_order_acquire); }

  std::string Leftover();
  void Clear();

 private:
  // Called with the mutex held. Prepares the front once all have posted it, finishes those without work. True when
  // sleepers may have something to do. `fault`: what is wrong with it.
  bool Advance(std::string& fault);
  void NotifyMembers();
  std::string OrderOf(int position, const TagNamer& namer) const;

  World* const world_;
  const std::vector<int> ranks_;
  const std::string label_;

  std::mutex mutex_;
  std::deque<std::shared_ptr<Rendezvous>> queue_;  // not done yet, oldest first
  uint64_t first_ = 0;                             // position of the front in the life of the group
  std::vector<uint64_t> next_;                     // by member
  std::vector<std::deque<Signature>> history_;     // by member, the last few
  bool front_active_ = false;
  NamerPtr namer_;
  std::atomic<uint64_t> activations_{0};
};

class CollectiveWork : public Work, private Condition {
 public:
  CollectiveWork(std::shared_ptr<World> world, GroupQueue* queue, std::shared_ptr<Rendezvous> rendezvous, int rank,
                 int position, CommKind kind, Tag tag, NamerPtr namer)
      : world_(std::move(world)),
        queue_(queue),
        rendezvous_(std::move(rendezvous)),
        rank_(rank),
        position_(position),
        kind_(kind),
        tag_(tag),
        namer_(std::move(namer)) {}
  bool Done() const override { return rendezvous_->done.load(std::memory_order_acquire); }
  void Wait() override;
  std::vector<at::Tensor> TakeTensors() override;

 private:
  bool Ready() const override { return Done() || queue_->activations() != seen_; }
  int MissingRank() const override;
  std::string Describe() const override;

  const std::shared_ptr<World> world_;
  GroupQueue* const queue_;
  const std::shared_ptr<Rendezvous> rendezvous_;
  const int rank_;
  const int position_;
  const CommKind kind_;
  const Tag tag_;
  const NamerPtr namer_;
  uint64_t seen_ = 0;
};

}  // namespace penstock::comm
