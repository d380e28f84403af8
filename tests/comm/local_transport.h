// tests/comm/local_transport.h
//
// A Transport between threads of one process: what the protocol of comm/remote is tested over where there is no MPI. A
// payload is copied by whoever looks while both sides have posted it, so it arrives some time after either.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "comm/remote/transport.h"

namespace penstock::comm {

class LocalHub {
 public:
  explicit LocalHub(int size) : size(size), frames(size), over(size) {}

  using Key = std::tuple<int, int, uint32_t>;  // sender, receiver, lane
  struct Half {
    char* data = nullptr;
    int64_t bytes = 0;
    uint64_t ticket = 0;
  };

  const int size;
  std::mutex mutex;
  std::vector<std::deque<std::pair<int, std::string>>> frames;  // [receiver]: sender, frame
  std::map<Key, Half> sends, receives;
  std::vector<std::vector<uint64_t>> over;  // [rank]: tickets
  // Frames from these ranks and to them go nowhere, as if their process had been stopped.
  std::vector<bool> dead = std::vector<bool>(size, false);
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalHub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return hub_->size; }

  void SendFrame(int peer, std::string frame) override {
    std::lock_guard lock(hub_->mutex);
    if (!hub_->dead[rank_] && !hub_->dead[peer]) hub_->frames[peer].emplace_back(rank_, std::move(frame));
  }
  bool TakeFrame(int& peer, std::string& frame) override {
    std::lock_guard lock(hub_->mutex);
    auto& queue = hub_->frames[rank_];
    if (queue.empty()) return false;
    std::tie(peer, frame) = std::move(queue.front());
    queue.pop_front();
    return true;
  }
  bool FramesSent() override { return true; }
  void StartSend(int peer, uint32_t lane, const void* data, int64_t bytes, at::Tensor keep, Ticket ticket) override {
    std::lock_guard lock(hub_->mutex);
    keep_.push_back(std::move(keep));
    hub_->sends[{rank_, peer, lane}] = {static_cast<char*>(const_cast<void*>(data)), bytes, ticket};
  }
  void StartReceive(int peer, uint32_t lane, void* data, int64_t bytes, at::Tensor keep, Ticket ticket) override {
    std::lock_guard lock(hub_->mutex);
    keep_.push_back(std::move(keep));
    hub_->receives[{peer, rank_, lane}] = {static_cast<char*>(data), bytes, ticket};
  }
  void Poll(std::vector<Ticket>& over) override {
    std::lock_guard lock(hub_->mutex);
    for (auto at = hub_->receives.begin(); at != hub_->receives.end();) {
      const auto send = hub_->sends.find(at->first);
      const auto [from, to, lane] = at->first;
      if (to != rank_ || send == hub_->sends.end()) {
        ++at;
        continue;
      }
      PENSTOCK_CHECK_EQ(send->second.bytes, at->second.bytes);
      std::memcpy(at->second.data, send->second.data, at->second.bytes);
      hub_->over[from].push_back(send->second.ticket);
      hub_->over[to].push_back(at->second.ticket);
      hub_->sends.erase(send);
      at = hub_->receives.erase(at);
    }
    over.insert(over.end(), hub_->over[rank_].begin(), hub_->over[rank_].end());
    hub_->over[rank_].clear();
    if (over.size() > 0 && hub_->receives.empty() && hub_->sends.empty()) keep_.clear();
  }
  void Abandon() override {
    std::lock_guard lock(hub_->mutex);
    std::erase_if(hub_->sends, [&](const auto& entry) { return std::get<0>(entry.first) == rank_; });
    std::erase_if(hub_->receives, [&](const auto& entry) { return std::get<1>(entry.first) == rank_; });
    hub_->over[rank_].clear();
    keep_.clear();
  }

 private:
  const std::shared_ptr<LocalHub> hub_;
  const int rank_;
  std::vector<at::Tensor> keep_;
};

}  // namespace penstock::comm
