// src/comm/remote/transport.h
//
// What the protocol needs from whatever connects two processes: small frames in order, and large payloads straight from
// and into tensor memory.
//
// Calls:   none of them blocks. Things go on in Poll and TakeFrames.
// Lanes:   a payload meets the receive of the same (sender, receiver, lane). The sender chooses lanes and tells the
//          receiver in a frame, in any order relative to the payload. A lane is not used again while it is in flight.
// Threads: one thread uses it.
// Errors:  PeerLost when a peer cannot be reached any more, WorldError when the transport itself is broken.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::comm {

class Transport {
 public:
  // Returned when the transfer is over; the caller numbers its transfers.
  using Ticket = uint64_t;

  virtual ~Transport() = default;
  // 0 <= rank() < size().
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends bytes to a peer (never oneself). Frames of one sender arrive in the order in which they were sent.
  virtual void SendFrame(int peer, std::string frame) = 0;
  // The next frame of any peer; false when there is none.
  virtual bool TakeFrame(int& peer, std::string& frame) = 0;
  // No frame waits to leave.
  virtual bool FramesSent() = 0;

  // Transfers of `bytes` > 0. `keep` owns the memory and is held until the transfer is over.
  virtual void StartSend(int peer, uint32_t lane, const void* data, int64_t bytes, at::Tensor keep, Ticket ticket) = 0;
  virtual void StartReceive(int peer, uint32_t lane, void* data, int64_t bytes, at::Tensor keep, Ticket ticket) = 0;
  // Moves things on and appends what is over.
  virtual void Poll(std::vector<Ticket>& over) = 0;
  // After a failure: no transfer is reported any more. Memory that may still be touched stays alive.
  virtual void Abandon() = 0;
};

}  // namespace penstock::comm
