// Gathers, broadcast, barrier: every member sends what it has for another, straight into the place where it belongs.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "comm/common/handover.h"
#include "comm/remote/exchanges.h"

namespace penstock::comm {
namespace {

class GatherExchange final : public Exchange {
 public:
  GatherExchange(DataLink& link, int self, int size, const Post& post)
      : link_(link), self_(self), size_(size), post_(post), kind_(post.signature.kind), owed_(size, 0) {}

  void Start() override {
    for (int i = 1; i < size_; ++i) {  // not all to the same one at once
      const int to = (self_ + i) % size_;
      const at::Tensor part = PartFor(to);
      if (BytesOf(part) == 0) continue;
      ++unsent_;
      link_.SendData(to, {.bytes = BytesOf(part)}, part.const_data_ptr(), part, [this] { --unsent_; });
    }
  }

  void AllPosted(const std::vector<RemotePost>& posts) override {
    for (int from = 0; from < size_; ++from) {
      if (from != self_) owed_[from] += BytesFrom(from, posts[from]);
    }
    KeepOwn();
    if (!FreeLengths()) return;
    at::NoGradGuard no_grad;
    received_.resize(size_);
    for (int from = 0; from < size_; ++from) {
      received_[from] =
          from == self_ ? OwnPart().detach() : at::empty(posts[from].sizes, at::TensorOptions(post_.signature.type));
    }
    for (const DataFrame& frame : std::exchange(early_, {})) Data(frame);
  }

  // Where lengths are free the tensors are made when all have said theirs.
  void Data(const DataFrame& frame) override {
    if (FreeLengths() && received_.empty()) {
      early_.push_back(frame);
      return;
    }
    const at::Tensor to = FreeLengths() ? received_[frame.from] : post_.out;
    const int64_t item = static_cast<int64_t>(to.element_size());
    const int64_t begin = kind_ == CommKind::all_gather ? post_.signature.bounds[frame.from] * item : 0;
    PENSTOCK_CHECK(begin + frame.offset + frame.bytes <= BytesOf(to), "{} bytes for a tensor of {}", frame.bytes,
                   BytesOf(to));
    const int from = frame.from;
    const int64_t bytes = frame.bytes;
    link_.ReceiveData(frame, static_cast<char*>(to.mutable_data_ptr()) + begin + frame.offset, to,
                      [this, from, bytes] { owed_[from] -= bytes; });
  }

  bool Complete() const override { return unsent_ == 0 && Awaited() < 0; }
  int Awaited() const override {
    for (int from = 0; from < size_; ++from) {
      if (owed_[from] > 0) return from;
    }
    return -1;
  }
  std::vector<at::Tensor> TakeReceived() override { return std::move(received_); }

 private:
  bool FreeLengths() const { return kind_ == CommKind::all_gather_v || kind_ == CommKind::all_to_all_v; }
  const at::Tensor& OwnPart() const { return post_.inputs[kind_ == CommKind::all_to_all_v ? self_ : 0]; }

  // What this member sends to another one; undefined: nothing.
  at::Tensor PartFor(int to) const {
    switch (kind_) {
      case CommKind::all_to_all_v:
        return post_.inputs[to];
      case CommKind::broadcast:
        return self_ == post_.signature.detail ? post_.out : at::Tensor();
      case CommKind::barrier:
        return {};
      default:
        return post_.inputs[0];
    }
  }
  int64_t BytesFrom(int from, const RemotePost& post) const {
    if (kind_ == CommKind::barrier) return 0;
    const auto item = static_cast<int64_t>(c10::elementSize(post_.signature.type));
    if (kind_ == CommKind::broadcast) return from == post_.signature.detail ? post_.signature.count * item : 0;
    if (kind_ == CommKind::all_gather) {
      return (post_.signature.bounds[from + 1] - post_.signature.bounds[from]) * item;
    }
    return std::accumulate(post.sizes.begin(), post.sizes.end(), item, std::multiplies<>());
  }
  void KeepOwn() {
    if (kind_ != CommKind::all_gather) return;
    const at::Tensor& in = post_.inputs[0];
    char* to = static_cast<char*>(post_.out.mutable_data_ptr()) +
               post_.signature.bounds[self_] * static_cast<int64_t>(in.element_size());
    if (in.numel() > 0 && to != in.const_data_ptr()) std::memcpy(to, in.const_data_ptr(), BytesOf(in));
  }

  DataLink& link_;
  const int self_;
  const int size_;
  const Post& post_;
  const CommKind kind_;
  int unsent_ = 0;
  std::vector<int64_t> owed_;  // bytes by position; below 0 while data is earlier than the post
  std::vector<DataFrame> early_;
  std::vector<at::Tensor> received_;
};

}  // namespace

std::unique_ptr<Exchange> MakeGatherExchange(DataLink& link, int self, int size, const Post& post) {
  return std::make_unique<GatherExchange>(link, self, size, post);
}

std::unique_ptr<Exchange> MakeExchange(DataLink& link, int self, int size, const Post& post) {
  return IsReduction(post.signature.kind) ? MakeReduceExchange(link, self, size, post)
                                          : MakeGatherExchange(link, self, size, post);
}

}  // namespace penstock::comm
