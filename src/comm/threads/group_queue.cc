#include "comm/threads/group_queue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace penstock::comm {
GroupQueue::GroupQueue(World* world, std::vector<int> ranks, std::string name)
    : world_(world),
      ranks_(std::move(ranks)),
      label_(fmt::format("{}{}{{{}}}", name, name.empty() ? "" : " ", fmt::join(ranks_, ", "))),
      next_(ranks_.size(), 0),
      history_(ranks_.size()) {}

std::string GroupQueue::OrderOf(int position, const TagNamer& namer) const {
  std::vector<std::string> names;
  for (const Signature& s : history_[position]) names.push_back(ToString(s, namer));
  return fmt::format("rank {}: {}{}", ranks_[position], next_[position] > names.size() ? "..., " : "",
                     fmt::join(names, ", "));
}

std::shared_ptr<Rendezvous> GroupQueue::Add(int position, Post post, const NamerPtr& namer) {
  std::string fault;
  std::shared_ptr<Rendezvous> mine;
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    namer_ = namer;
    const uint64_t at = next_[position]++ - first_;
    if (at == queue_.size()) queue_.push_back(std::make_shared<Rendezvous>(size()));
    mine = queue_[at];
    history_[position].push_back(post.signature);
    if (history_[position].size() > size_t{kShownHistory}) history_[position].pop_front();
    if (mine->first < 0) mine->first = position;
    const Signature& expected = mine->first == position ? post.signature : mine->posts[mine->first].signature;
    if (post.signature != expected) {
      fault = fmt::format("collective {} of group {}: rank {} issues {}, rank {} issues {} (order of {}; order of {})",
                          first_ + at, label_, ranks_[mine->first], ToString(expected, *namer), ranks_[position],
                          ToString(post.signature, *namer), OrderOf(mine->first, *namer), OrderOf(position, *namer));
    } else {
      mine->posts[position] = std::move(post);
      ++mine->num_posted;
      mine->posted[position].store(true, std::memory_order_release);
      wake = Advance(fault);
    }
  }
  if (!fault.empty()) world_->FailWith(ranks_[position], OrderMismatch(fault));
  if (wake) NotifyMembers();
  return mine;
}

bool GroupQueue::Advance(std::string& fault) {
  bool changed = false;
  while (!front_active_ && !queue_.empty() && queue_.front()->num_posted == size()) {
    Rendezvous& front = *queue_.front();
    try {
      front.job = MakeJob(front.posts);
    } catch (const Error& e) {
      fault = fmt::format("collective {} of group {}: {}", first_, label_, e.what());
      break;
    }
    changed = true;
    if (front.job.num_shards > 0) {
      front_active_ = true;
      break;
    }
    front.posts.clear();
    front.done.store(true, std::memory_order_release);
    queue_.pop_front();
    ++first_;
  }
  if (changed) activations_.fetch_add(1, std::memory_order_release);
  return changed;
}

bool GroupQueue::Help() {
  std::shared_ptr<Rendezvous> front;
  {
    std::lock_guard lock(mutex_);
    if (!front_active_) return false;
    front = queue_.front();
  }
  bool ran = false;
  const int64_t total = front->job.num_shards;
  int64_t completed = 0;
  for (;;) {
    const int64_t shard = front->claimed.fetch_add(1, std::memory_order_relaxed);
    if (shard >= total) break;
    front->job.run(shard);
    ran = true;
    completed = front->completed.fetch_add(1, std::memory_order_acq_rel) + 1;
  }
  if (completed == total) {  // whoever completes the last shard has seen the others' writes
    // Nobody else looks at it any more. Before it counts as done, so that memory is free when a waiter goes on.
    front->posts.clear();
    std::string fault;
    {
      std::lock_guard lock(mutex_);
      front->job.run = nullptr;
      front->done.store(true, std::memory_order_release);
      queue_.pop_front();
      ++first_;
      front_active_ = false;
      Advance(fault);
    }
    NotifyMembers();
    if (!fault.empty()) world_->FailWith(-1, OrderMismatch(fault));
  }
  return ran;
}

void GroupQueue::NotifyMembers() {
  for (const int r : ranks_) world_->Notify(r);
}

std::string GroupQueue::Leftover() {
  std::lock_guard lock(mutex_);
  if (queue_.empty()) return "";
  const Rendezvous& front = *queue_.front();
  if (front.num_posted == size()) {
    return fmt::format(" {} of group {} was posted by all and never waited for",
                       ToString(front.posts[0].signature, *namer_), label_);
  }
  std::vector<int> missing;
  for (int i = 0; i < size(); ++i) {
    if (!front.posted[i].load(std::memory_order_relaxed)) missing.push_back(ranks_[i]);
  }
  return fmt::format(" {} of group {} was never posted by rank {}",
                     ToString(front.posts[front.first].signature, *namer_), label_, fmt::join(missing, ", "));
}

void GroupQueue::Clear() {
  std::lock_guard lock(mutex_);
  queue_.clear();
}

void CollectiveWork::Wait() {
  const auto since = std::chrono::steady_clock::now();
  for (;;) {
    if (world_->failed()) world_->ThrowFailure(rank_, Describe());
    if (Done()) return;
    seen_ = queue_->activations();
    // Everything before it in the queue has been posted by all whom it waits for, or will be: run what is ready.
    if (queue_->Help()) continue;
    world_->Wait(rank_, *this, since);
  }
}

std::vector<at::Tensor> CollectiveWork::TakeTensors() {
  Wait();
  auto& received = rendezvous_->job.received;
  return received.empty() ? std::vector<at::Tensor>{} : std::exchange(received[position_], {});
}

int CollectiveWork::MissingRank() const {
  if (Done()) return -1;
  for (int i = 0; i < queue_->size(); ++i) {
    if (!rendezvous_->posted[i].load(std::memory_order_acquire)) return queue_->ranks()[i];
  }
  return -1;
}

std::string CollectiveWork::Describe() const {
  return fmt::format("{} '{}' of group {}", ToString(kind_), (*namer_)(tag_), queue_->label());
}

}  // namespace penstock::comm
