#include "comm/mpi/mpi_transport.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "comm/mpi/mpi_session.h"

namespace penstock::comm {
namespace {

constexpr int kFrameTag = 0;
constexpr int kFirstLaneTag = 1;
constexpr size_t kChunk = 32 << 10;          // of frames, with the byte that says whether more follow
constexpr int64_t kLargestPart = 1LL << 30;  // counts of MPI are int

// What MPI may still touch after a failure: its memory stays for the rest of the process.
struct Abandoned {
  std::vector<MPI_Request> requests;
  std::vector<at::Tensor> tensors;
  std::vector<std::unique_ptr<std::string>> frames;
};
Abandoned& Graveyard() {
  static auto* const graveyard = new Abandoned;
  return *graveyard;
}

}  // namespace

template <typename T>
void MpiTransport::Requests<T>::Remove(size_t i) {
  requests[i] = requests.back();
  requests.pop_back();
  if (i + 1 < entries.size()) entries[i] = std::move(entries.back());
  entries.pop_back();
}

MpiTransport::MpiTransport() {
  CheckMpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  CheckMpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  CheckMpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  CheckMpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  int* upper = nullptr;
  int known = 0;
  CheckMpi(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &upper, &known), "MPI_Comm_get_attr");
  num_lanes_ = static_cast<uint32_t>(known != 0 ? *upper : 32767) - kFirstLaneTag;
  inboxes_.resize(size_);
  frame_receives_.assign(size_, MPI_REQUEST_NULL);
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    inboxes_[r].chunk.resize(kChunk);
    PostReceive(r);
  }
}

MpiTransport::~MpiTransport() {
  Abandon();
  Abandoned& graveyard = Graveyard();
  graveyard.requests.insert(graveyard.requests.end(), frame_sends_.requests.begin(), frame_sends_.requests.end());
  for (std::unique_ptr<std::string>& frame : frame_sends_.entries) graveyard.frames.push_back(std::move(frame));
  for (int r = 0; r < size_; ++r) {
    if (frame_receives_[r] == MPI_REQUEST_NULL) continue;
    // Cancelling a receive is local; after it the wait is over at once.
    if (MPI_Cancel(&frame_receives_[r]) == MPI_SUCCESS) MPI_Wait(&frame_receives_[r], MPI_STATUS_IGNORE);
  }
}

void MpiTransport::PostReceive(int peer) {
  CheckMpi(MPI_Irecv(inboxes_[peer].chunk.data(), static_cast<int>(kChunk), MPI_BYTE, peer, kFrameTag, comm_,
                     &frame_receives_[peer]),
           "MPI_Irecv");
}

int MpiTransport::TagOf(uint32_t lane) const { return kFirstLaneTag + static_cast<int>(lane % num_lanes_); }

void MpiTransport::SendFrame(int peer, std::string frame) {
  for (size_t at = 0; at < frame.size();) {
    const size_t length = std::min(kChunk - 1, frame.size() - at);
    auto chunk = std::make_unique<std::string>(frame, at, length);
    at += length;
    chunk->push_back(at < frame.size() ? 1 : 0);
    MPI_Request request = MPI_REQUEST_NULL;
    CheckMpi(MPI_Isend(chunk->data(), static_cast<int>(chunk->size()), MPI_BYTE, peer, kFrameTag, comm_, &request),
             "MPI_Isend");
    frame_sends_.Add(request, std::move(chunk));
  }
}

bool MpiTransport::TakeFrame(int& peer, std::string& frame) {
  if (arrived_.empty() && size_ > 1) {
    indices_.resize(size_);
    statuses_.resize(size_);
    int count = 0;
    CheckMpi(MPI_Testsome(size_, frame_receives_.data(), &count, indices_.data(), statuses_.data()), "MPI_Testsome");
    for (int i = 0; i < std::max(count, 0); ++i) {
      const int from = indices_[i];
      int bytes = 0;
      CheckMpi(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes), "MPI_Get_count");
      PENSTOCK_CHECK(bytes > 0, "an empty chunk of rank {}", from);
      Inbox& inbox = inboxes_[from];
      inbox.partial.append(inbox.chunk.data(), bytes - 1);
      const bool last = inbox.chunk[bytes - 1] == 0;
      PostReceive(from);
      if (last) arrived_.emplace_back(from, std::exchange(inbox.partial, std::string()));
    }
  }
  if (arrived_.empty()) return false;
  peer = arrived_.front().first;
  frame = std::move(arrived_.front().second);
  arrived_.pop_front();
  return true;
}

template <typename T, typename Over>
void MpiTransport::Test(Requests<T>& tested, const Over& over) {
  if (tested.requests.empty()) return;
  indices_.resize(tested.requests.size());
  int count = 0;
  CheckMpi(MPI_Testsome(static_cast<int>(tested.requests.size()), tested.requests.data(), &count, indices_.data(),
                        MPI_STATUSES_IGNORE),
           "MPI_Testsome");
  if (count <= 0) return;
  std::sort(indices_.begin(), indices_.begin() + count);
  for (int i = count - 1; i >= 0; --i) {  // from the back: removing moves the last one into the gap
    over(tested.entries[indices_[i]]);
    tested.Remove(indices_[i]);
  }
}

bool MpiTransport::FramesSent() {
  Test(frame_sends_, [](const auto&) {});
  return frame_sends_.requests.empty();
}

void MpiTransport::StartSend(int peer, uint32_t lane, const void* data, int64_t bytes, at::Tensor keep, Ticket ticket) {
  const auto parts = std::make_shared<int>(0);
  for (int64_t at = 0; at < bytes; at += kLargestPart) {
    MPI_Request request = MPI_REQUEST_NULL;
    CheckMpi(MPI_Isend(static_cast<const char*>(data) + at, static_cast<int>(std::min(kLargestPart, bytes - at)),
                       MPI_BYTE, peer, TagOf(lane), comm_, &request),
             "MPI_Isend");
    ++*parts;
    transfers_.Add(request, {ticket, keep, parts, false});
  }
}

void MpiTransport::StartReceive(int peer, uint32_t lane, void* data, int64_t bytes, at::Tensor keep, Ticket ticket) {
  const auto parts = std::make_shared<int>(0);
  for (int64_t at = 0; at < bytes; at += kLargestPart) {
    MPI_Request request = MPI_REQUEST_NULL;
    CheckMpi(MPI_Irecv(static_cast<char*>(data) + at, static_cast<int>(std::min(kLargestPart, bytes - at)), MPI_BYTE,
                       peer, TagOf(lane), comm_, &request),
             "MPI_Irecv");
    ++*parts;
    transfers_.Add(request, {ticket, keep, parts, true});
  }
}

void MpiTransport::Poll(std::vector<Ticket>& over) {
  Test(frame_sends_, [](const auto&) {});
  Test(transfers_, [&](const Transfer& transfer) {
    if (--*transfer.parts == 0) over.push_back(transfer.ticket);
  });
}

void MpiTransport::Abandon() {
  Abandoned& graveyard = Graveyard();
  for (size_t i = 0; i < transfers_.requests.size(); ++i) {
    if (transfers_.entries[i].receives) MPI_Cancel(&transfers_.requests[i]);
    int done = 0;
    if (MPI_Test(&transfers_.requests[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0) continue;
    graveyard.requests.push_back(transfers_.requests[i]);
    graveyard.tensors.push_back(std::move(transfers_.entries[i].keep));
  }
  transfers_ = {};
}

}  // namespace penstock::comm
