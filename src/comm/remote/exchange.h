// src/comm/remote/exchange.h
//
// The data of one collective, as one member moves it: direct exchange, everybody with everybody (docs/numerics.md R4,
// comm/traffic.h). Gathers are one phase; reductions are two: slices to the owner of a shard, who adds them in the
// planned order, and sums back to all. Reductions go in pieces of about 1 MiB, so that transfers and additions overlap.
//
// Threads: the progress thread alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/common/signature.h"

namespace penstock::comm {

// What another member announced with its post.
struct RemotePost {
  Signature signature;
  std::vector<TreeNode> nodes;
  std::vector<int64_t> sizes;  // of the tensor for this member, where lengths are free
};

// The announcement of a piece of data.
struct DataFrame {
  int from = 0;         // position in the group
  uint8_t phase = 0;    // 0: gathered or to be added, 1: a sum
  uint32_t source = 0;  // which of the sender's inputs
  int64_t offset = 0;   // bytes from the begin of the sender's part, or of the shard
  int64_t bytes = 0;
  bool is_inline = false;
  std::string contents = {};  // when inline
  uint32_t lane = 0;          // else
};

// How an exchange moves data; the engine.
class DataLink {
 public:
  using Callback = std::function<void()>;
  virtual ~DataLink() = default;
  // Announces and sends frame.bytes from `data` to the member at `position` (never oneself). frame.from, is_inline,
  // contents and lane are filled in. `sent`: the memory may be written again; may be called before Send returns.
  virtual void SendData(int position, DataFrame frame, const void* data, const at::Tensor& keep, Callback sent) = 0;
  // Receives what `frame` announced. `arrived` may be called before it returns.
  virtual void ReceiveData(const DataFrame& frame, void* to, const at::Tensor& keep, Callback arrived) = 0;
  // Memory for `bytes` up to kPieceBytes, reused.
  virtual at::Tensor TakeScratch() = 0;
  virtual void GiveScratch(at::Tensor scratch) = 0;
};

inline constexpr int64_t kPieceBytes = 1 << 20;

class Exchange {
 public:
  virtual ~Exchange() = default;
  // The collective is at the front of its group here: sends what does not depend on others.
  virtual void Start() = 0;
  // After Start, in the order of each sender; before or after AllPosted.
  virtual void Data(const DataFrame& frame) = 0;
  // After Start: all members have posted the same. InternalError when their contributions contradict each other.
  virtual void AllPosted(const std::vector<RemotePost>& posts) = 0;
  // Everything is here, added and sent. Only after AllPosted.
  virtual bool Complete() const = 0;
  // A position that still owes data; -1: none, or unknown.
  virtual int Awaited() const = 0;
  // After Complete, once: what the member received, by group rank; empty for kinds that receive in place.
  virtual std::vector<at::Tensor> TakeReceived() { return {}; }
};

// `self`: position of this member of `size`. The post and the link outlive it.
std::unique_ptr<Exchange> MakeExchange(DataLink& link, int self, int size, const Post& post);

}  // namespace penstock::comm
