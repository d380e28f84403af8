// src/comm/mpi/mpi_transport.h
//
// Frames and transfers over MPI: non-blocking calls and tests only, because a blocking call of MPI keeps a core busy
// (measured, docs/decisions.md). A communicator of its own per world, which is never freed: late frames of a peer that
// ends a moment later belong to it.
#pragma once

#include <mpi.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/remote/transport.h"

namespace penstock::comm {

class MpiTransport final : public Transport {
 public:
  // All processes at once; blocks until all have come.
  MpiTransport();
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  MPI_Comm communicator() const { return comm_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void SendFrame(int peer, std::string frame) override;
  bool TakeFrame(int& peer, std::string& frame) override;
  bool FramesSent() override;
  void StartSend(int peer, uint32_t lane, const void* data, int64_t bytes, at::Tensor keep, Ticket ticket) override;
  void StartReceive(int peer, uint32_t lane, void* data, int64_t bytes, at::Tensor keep, Ticket ticket) override;
  void Poll(std::vector<Ticket>& over) override;
  void Abandon() override;

 private:
  // Requests that are tested together, and what belongs to each.
  template <typename T>
  struct Requests {
    std::vector<MPI_Request> requests;
    std::vector<T> entries;
    void Add(MPI_Request request, T entry) {
      requests.push_back(request);
      entries.push_back(std::move(entry));
    }
    void Remove(size_t i);
  };
  struct Transfer {
    Ticket ticket;
    at::Tensor keep;
    std::shared_ptr<int> parts;  // still on their way
    bool receives;
  };
  // A frame arrives in chunks: the last byte of each says whether it is the last one.
  struct Inbox {
    std::vector<char> chunk;
    std::string partial;
  };

  void PostReceive(int peer);
  int TagOf(uint32_t lane) const;
  // Tests all and calls `over(entry)` for those that are.
  template <typename T, typename Over>
  void Test(Requests<T>& requests, const Over& over);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  uint32_t num_lanes_ = 1;
  std::vector<Inbox> inboxes_;
  std::vector<MPI_Request> frame_receives_;  // [peer]
  std::deque<std::pair<int, std::string>> arrived_;
  Requests<std::unique_ptr<std::string>> frame_sends_;  // a chunk stays where it is while MPI reads it
  Requests<Transfer> transfers_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace penstock::comm
