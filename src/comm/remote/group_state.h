// src/comm/remote/group_state.h
//
// The in-order queue of collectives of one group, as one member sees it: what each member has posted is matched by
// position and compared; the front runs. The progress thread alone.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/remote/exchange.h"
#include "comm/remote/works.h"

namespace penstock::comm {

struct Collective {
  explicit Collective(int size) : posts(size) {}
  std::vector<std::optional<RemotePost>> posts;  // by member
  int num_posted = 0;
  int first = -1;            // position of the first one to post
  std::optional<Post> mine;  // once this rank has posted
  std::shared_ptr<RemoteCollectiveWork> work;
  std::vector<DataFrame> early;  // before the exchange began
  std::unique_ptr<Exchange> exchange;
  bool told_all_posted = false;
};

class GroupState {
 public:
  GroupState(std::vector<int> ranks, const std::string& name, int self);

  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }
  // Of this rank; -1: no member.
  int position() const { return position_; }
  int PositionOf(int rank) const;
  const std::string& label() const { return label_; }

  // The next collective of a member. What is wrong with it, or empty.
  [[nodiscard]] std::string AddPost(int position, RemotePost post, const NamerPtr& namer);
  // The collective that is number `sequence` in the life of the group, which must not be over.
  Collective& At(uint64_t sequence);
  // The one that this rank posted last.
  Collective& Newest() { return At(next_[position_] - 1); }
  uint64_t first() const { return first_; }
  bool empty() const { return queue_.empty(); }
  Collective& front() { return *queue_.front(); }
  void Pop();

  // Says to the works what they wait for.
  void UpdateWorks();
  // What was not posted by all, as " ..." for a message; said by the lowest member that has posted it.
  std::string Leftover(const NamerPtr& namer) const;
  void Clear() { queue_.clear(); }

  uint32_t own_id = 0;  // this rank's number for it, once it has posted

 private:
  std::string OrderOf(int position, const TagNamer& namer) const;

  const std::vector<int> ranks_;
  const int position_;
  const std::string label_;
  std::deque<std::unique_ptr<Collective>> queue_;  // not over, oldest first
  uint64_t first_ = 0;                             // number of the front
  std::vector<uint64_t> next_;                     // by member: how many it has posted
  std::vector<std::deque<Signature>> history_;     // by member, the last few
};

}  // namespace penstock::comm
