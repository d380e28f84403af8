// src/comm/remote/works.h
//
// The works that a RemoteCommunicator gives out. The rank's thread waits; the progress thread finishes them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/remote/shared.h"

namespace penstock::comm {

class RemoteWork : public Work, protected Condition {
 public:
  bool Done() const final { return done_.load(std::memory_order_acquire); }
  void Wait() final { shared_->Wait(*this); }
  std::vector<at::Tensor> TakeTensors() final {
    Wait();
    return std::exchange(tensors_, {});
  }

  // ---- the progress thread ----
  // Everything the communicator held for it must be let go before. The sleeper is woken.
  void Finish(std::vector<at::Tensor> tensors) {
    tensors_ = std::move(tensors);
    done_.store(true, std::memory_order_release);
    shared_->Notify();
  }
  // Whose contribution is missing (-1: none is, or it was not looked yet), and whom it waits for.
  void SetMissing(int missing, int awaited) {
    awaited_.store(awaited, std::memory_order_relaxed);
    missing_.store(missing, std::memory_order_release);
    if (missing >= 0 && shared_->finished(missing)) shared_->Notify();
  }
  const Tag& tag() const { return tag_; }
  const NamerPtr& namer() const { return namer_; }

 protected:
  RemoteWork(std::shared_ptr<Shared> shared, int awaited, Tag tag, NamerPtr namer)
      : shared_(std::move(shared)), tag_(tag), namer_(std::move(namer)), awaited_(awaited) {}
  bool Ready() const final { return Done(); }
  int MissingRank() const final { return Done() ? -1 : missing_.load(std::memory_order_acquire); }
  int AwaitedRank() const final { return awaited_.load(std::memory_order_relaxed); }

  const std::shared_ptr<Shared> shared_;
  const Tag tag_;
  const NamerPtr namer_;

 private:
  std::vector<at::Tensor> tensors_;  // written before done_
  std::atomic<bool> done_{false};
  std::atomic<int> missing_{-1};
  std::atomic<int> awaited_;
};

class RemoteRecvWork final : public RemoteWork {
 public:
  RemoteRecvWork(std::shared_ptr<Shared> shared, int peer, Tag tag, NamerPtr namer)
      : RemoteWork(std::move(shared), peer, tag, std::move(namer)), peer_(peer) {}
  int peer() const { return peer_; }

 private:
  std::string Describe() const override { return fmt::format("receive '{}' from rank {}", (*namer_)(tag_), peer_); }
  const int peer_;
};

class RemoteCollectiveWork final : public RemoteWork {
 public:
  RemoteCollectiveWork(std::shared_ptr<Shared> shared, CommKind kind, Group group, Tag tag, NamerPtr namer)
      : RemoteWork(std::move(shared), -1, tag, std::move(namer)), kind_(kind), group_(std::move(group)) {}

 private:
  std::string Describe() const override {
    return fmt::format("{} '{}' of group {}", ToString(kind_), (*namer_)(tag_), group_.ToString());
  }
  const CommKind kind_;
  const Group group_;
};

}  // namespace penstock::comm
