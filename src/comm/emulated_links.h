// src/comm/emulated_links.h
//
// Latency and bandwidth of a link model on top of any back end: what is sent arrives as it would over those links. The
// transfers really happen; the works are over when the model says so, and who waits for one sleeps until then.
//
// Messages:    the transfer begins when the message is sent and the transfers before it from this rank to that peer
//              are over; the send is over (and may be dropped at any time: it is buffered) when its transfer is; the
//              receive `latency` later. Different pairs do not slow each other down. A message to oneself is free.
// Collectives: begin when the last member has come and the collectives before it in the group are over; end for all
//              members at once. A barrier is a zero-byte message of each member to each other, so that a member that
//              comes late leaves at once; it does not keep the queue busy.
// How:         messages carry their time of arrival in a tensor of their own, and each collective is accompanied by a
//              gather of the times at which its members came, over a group of its own. So the clocks of all ranks must
//              be one (a machine), or virtual ones. Costs some microseconds per operation, which the times do not hide.
// Sizes:       what really travels, or, with Declare, as many bytes as the caller says, so that tiny tensors can stand
//              for large ones; or a price of the caller's own. traffic() counts what travels, without the times.
// Threads, errors: as comm/communicator.h. A rank that sleeps until its message arrives does not see a failure before.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/link_model.h"
#include "base/time_source.h"
#include "comm/communicator.h"

namespace penstock::comm {

// A posted operation that ends at a time.
class TimedWork : public Work {
 public:
  // When it is or was over by the model; blocks until that is known, not until then.
  virtual TimeSource::Time EndTime() = 0;
};

class EmulatedLinks final : public Communicator {
 public:
  // All arguments must outlive it, and it its works. `time_scale`: seconds of the clock per second of the model.
  EmulatedLinks(Communicator& inner, const LinkModel& model, TimeSource& time, double time_scale = 1);
  ~EmulatedLinks() override;

  // The next send or collective of this rank counts as one of `bytes` bytes.
  void DeclareBytes(int64_t bytes) { declared_.bytes = bytes; }
  // Or has this price instead of the model's; of a collective (transfer + latency) the highest of the members counts.
  void DeclareSeconds(const LinkSeconds& price) { declared_.price = price; }
  // Waits so far that did not return at once, and the latest end of what was waited for at all.
  int64_t waits() const { return waits_; }
  TimeSource::Time waited_until() const { return waited_until_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string_view backend() const override { return backend_; }
  const Group& world() const override { return inner_.world(); }
  Group CreateGroup(std::vector<int> ranks, std::string name) override {
    return inner_.CreateGroup(std::move(ranks), std::move(name));
  }

  // The works of all of these are TimedWork.
  WorkPtr Send(int peer, const Tag& tag, std::vector<at::Tensor> tensors) override;
  WorkPtr Recv(int peer, const Tag& tag) override;
  WorkPtr AllReduceSum(const Group& group, const Tag& tag, at::Tensor data) override;
  WorkPtr ReduceScatterSum(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                           at::Tensor out) override;
  WorkPtr AllGather(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                    at::Tensor out) override;
  WorkPtr AllGatherV(const Group& group, const Tag& tag, at::Tensor data) override;
  WorkPtr AllToAllV(const Group& group, const Tag& tag, std::vector<at::Tensor> parts) override;
  WorkPtr Broadcast(const Group& group, const Tag& tag, int root, at::Tensor data) override;
  WorkPtr Barrier(const Group& group, const Tag& tag) override;
  WorkPtr AllReduceTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                        at::Tensor out) override;
  WorkPtr ReduceScatterTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                            std::vector<int64_t> bounds, at::Tensor out) override;
  bool Poll() override { return inner_.Poll(); }

  void SetCurrent(std::string_view action) override { inner_.SetCurrent(action); }
  void SetHostWork(bool now) override { inner_.SetHostWork(now); }
  RankStatus StatusOf(int rank) const override { return inner_.StatusOf(rank); }
  void SetTagNamer(TagNamer namer) override { inner_.SetTagNamer(std::move(namer)); }

  const TrafficCounters& traffic() const override { return traffic_; }
  void ResetTraffic() override { traffic_ = {}; }

 private:
  class Queue;  // collectives of one group
  class SendWork;
  class RecvWork;
  class CollectiveWork;
  struct Declared {
    std::optional<int64_t> bytes;
    std::optional<LinkSeconds> price;
  };

  template <typename Post>
  WorkPtr Collective(const Group& group, CommKind kind, const Tag& tag, int64_t bytes, const Post& post);
  TimeSource::Time::duration Scaled(double seconds) const;
  // Sleeps until then.
  void WaitUntil(TimeSource::Time end, bool blocked);

  Communicator& inner_;
  const LinkModel& model_;
  TimeSource& time_;
  const double time_scale_;
  const std::string backend_;
  Declared declared_;
  int64_t waits_ = 0;
  TimeSource::Time waited_until_{};
  std::vector<TimeSource::Time> channel_free_;              // [peer]
  std::unordered_map<int, std::shared_ptr<Queue>> queues_;  // by Group::id()
  TrafficCounters traffic_;
};

}  // namespace penstock::comm
