// src/comm/communicator.h
//
// Messages and collectives between the ranks of a world. One Communicator per rank; ranks are threads (threads), later
// processes (mpi) or GPUs (nccl). Nothing here assumes a shared address space.
//
// Calls:     every operation is asynchronous: it is posted at once and its Work tells when it is over. Nothing but
//            Work::Wait and Work::TakeTensors blocks. Progress of collectives happens in Wait and in Poll; Done only
//            looks.
// Order:     messages are matched in order per (sender, receiver); collectives in order per group. Different channels
//            and different groups do not wait for each other (the "channelled" transport of the verifier). Both sides
//            give a tag, which is compared: a mismatch of tag, kind, element type or count is OrderMismatch on all
//            ranks, with both orders in the message. Never a hang.
// Ownership: a sent tensor is handed over: from the call on it is read-only for the sender too, because the receiver
//            may get the same memory. Destinations of collectives must not be touched until the Work is over; the
//            communicator holds references meanwhile.
// Tensors:   CPU, contiguous. Sent tensors arrive contiguous and 64-byte aligned whatever they were (docs/numerics.md
//            R6), without history. Undefined tensors may be sent. Reductions: float, double, int32, int64.
// Threads:   a Communicator is used by one thread at a time; objects of different ranks are independent.
// Errors:    PeerLost when a peer failed, returned early or did not answer within the deadline: it names the waiting
//            rank, what it waited for, the peer and what the peer was doing. OrderMismatch, see above. InternalError
//            for bad arguments, before anything is sent. After any of these the world is over: every pending and later
//            call on every rank throws.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/tree.h"
#include "comm/group.h"
#include "comm/shards.h"
#include "comm/tag.h"
#include "comm/traffic.h"

namespace penstock::comm {

// Two ranks disagree about what comes next on a channel or in a group. A bug of whoever made the schedule.
class OrderMismatch : public InternalError {
 public:
  using InternalError::InternalError;
};

// A posted operation. Dropping it does not cancel it.
class Work {
 public:
  virtual ~Work() = default;
  // Is it over? Never blocks, never throws, does no work.
  virtual bool Done() const = 0;
  // Blocks until it is over, and helps.
  virtual void Wait() = 0;
  // Waits, then gives what was received (Recv, AllGatherV, AllToAllV; else nothing). Once: a second call gives nothing.
  // The tensors may be shared with the sender: read-only.
  virtual std::vector<at::Tensor> TakeTensors() = 0;
};
using WorkPtr = std::shared_ptr<Work>;

// What a rank was last known to do.
struct RankStatus {
  std::string action;     // as given to SetCurrent; empty before the first one
  double seconds = 0;     // since then
  bool finished = false;  // its body has returned or thrown
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  // 0 <= rank() < size().
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view backend() const = 0;

  // All ranks.
  virtual const Group& world() const = 0;
  // Local: no communication, and the order of creation may differ between ranks. `ranks` strictly ascending. The
  // caller need not be a member.
  virtual Group CreateGroup(std::vector<int> ranks, std::string name = "") = 0;

  // ---- point to point ----
  // Hands `tensors` to `peer` (which may be the caller). Buffered: never waits for the receiver.
  virtual WorkPtr Send(int peer, const Tag& tag, std::vector<at::Tensor> tensors) = 0;
  // The next message of `peer`; its tag must be `tag`.
  virtual WorkPtr Recv(int peer, const Tag& tag) = 0;

  // ---- collectives; every member of the group calls the same ones in the same order ----
  // Element-wise sum over the group, in place, the same on all. Added left to right in group order. 0 elements allowed.
  virtual WorkPtr AllReduceSum(const Group& group, const Tag& tag, at::Tensor data) = 0;
  // out[i] = sum over the group of in[bounds[rank] + i]. `in` has bounds.back() elements on every rank, `out` the
  // length of the caller's shard. `out` may be exactly the caller's shard of `in`.
  virtual WorkPtr ReduceScatterSum(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                                   at::Tensor out) = 0;
  // The concatenation of everybody's `in` by group rank. `in` may be exactly the caller's shard of `out`. Any type.
  virtual WorkPtr AllGather(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                            at::Tensor out) = 0;
  // Everybody's `data`, any lengths: TakeTensors() gives group.size() tensors by group rank. Any type.
  virtual WorkPtr AllGatherV(const Group& group, const Tag& tag, at::Tensor data) = 0;
  // parts[i] goes to group rank i: TakeTensors() gives the parts for the caller, by group rank. Lengths are free.
  virtual WorkPtr AllToAllV(const Group& group, const Tag& tag, std::vector<at::Tensor> parts) = 0;
  // root (a group rank) gives, the others receive in place; equal length and type on all. Any type.
  virtual WorkPtr Broadcast(const Group& group, const Tag& tag, int root, at::Tensor data) = 0;
  // Over when all members have posted it.
  virtual WorkPtr Barrier(const Group& group, const Tag& tag) = 0;

  // The canonical tree of docs/numerics.md R2-R4: every rank brings the nodes of the tree over [0, n_leaves) whose
  // partial sums it holds (any number, none too; no leaf twice in the group), all with out.numel() elements. out =
  // T[0, n_leaves) on all ranks, leaves that nobody brings are skipped (no leaf at all: zeros). float or double. `out`
  // may be one of the caller's contributions.
  using Contributions = std::vector<std::pair<TreeNode, at::Tensor>>;
  virtual WorkPtr AllReduceTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                                at::Tensor out) = 0;
  // The same, but the caller gets only its shard: the contributions have bounds.back() elements, `out` the shard's.
  // `out` may be exactly the caller's shard of one of its contributions.
  virtual WorkPtr ReduceScatterTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                                    std::vector<int64_t> bounds, at::Tensor out) = 0;

  // Works on collectives that all members have posted; true when it did something. Never waits for a peer.
  virtual bool Poll() = 0;

  // ---- what a survivor can read ----
  // Publishes what this rank does now (cut at 95 bytes); tens of nanoseconds.
  virtual void SetCurrent(std::string_view action) = 0;
  // While any rank does host work (files, whose time nobody can bound), nobody's deadline runs out. See HostWork.
  virtual void SetHostWork(bool now) = 0;
  virtual RankStatus StatusOf(int rank) const = 0;
  // Names tags in this rank's messages.
  virtual void SetTagNamer(TagNamer namer) = 0;

  // Sent by this rank since the start, or since ResetTraffic.
  virtual const TrafficCounters& traffic() const = 0;
  virtual void ResetTraffic() = 0;
};

// Host work of this rank for a scope.
class HostWork {
 public:
  explicit HostWork(Communicator& communicator) : communicator_(communicator) { communicator_.SetHostWork(true); }
  ~HostWork() { communicator_.SetHostWork(false); }
  HostWork(const HostWork&) = delete;
  HostWork& operator=(const HostWork&) = delete;

 private:
  Communicator& communicator_;
};

}  // namespace penstock::comm
