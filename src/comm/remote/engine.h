// src/comm/remote/engine.h
//
// The protocol of one rank, driven by its progress thread: commands of the rank's thread become frames and transfers,
// and what arrives finishes works.
//
// Messages:    a header frame per message, in order; tensors of up to kInlineBytes in it, larger ones as transfers that
//              start when the header is there, into fresh memory.
// Collectives: every member tells all others what it posts; signatures are compared by whoever has two of them. Data
//              starts when the collective is at the front of its group on the sender, and is taken when it is on the
//              receiver (group_state.h, exchange.h).
// End:         finished (the body is over) to all; when all are, closing (what was never matched) to all; when nothing
// is
//              on its way, bye to all. After a failure closing comes at once and carries the failure.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/remote/group_state.h"
#include "comm/remote/in_channel.h"
#include "comm/remote/shared.h"
#include "comm/remote/transport.h"
#include "comm/remote/wire.h"

namespace penstock::comm {

class Engine final : private DataLink {
 public:
  Engine(std::shared_ptr<Shared> shared, Transport& transport);
  ~Engine() override;

  // Until the world is over. True when all peers were there to the end.
  bool Run();

 private:
  using Clock = std::chrono::steady_clock;
  using Callback = DataLink::Callback;
  enum class FrameKind : uint8_t {
    message,
    group,
    post,
    data,
    status,
    host_work,
    failure,
    finished,
    closing,
    bye,
  };
  // Up to here payloads travel inside frames.
  static constexpr int64_t kInlineBytes = 4096;

  struct Peer {
    explicit Peer(InChannel c) : channel(std::move(c)) {}
    InChannel channel;  // from it
    std::string outbox;
    uint32_t next_lane = 0;
    std::map<uint32_t, GroupState*> groups;  // by its ids
    Clock::time_point heard;
    bool finished = false;
    bool closed = false;
    bool bye = false;
    bool lost = false;
    std::string leftover;
    bool has_failure = false;  // closed with one
    FailureRecord failure;
  };

  // ---- engine.cc: the loop ----
  bool Step(std::chrono::microseconds longest);
  void Do(SendCommand command);
  void Do(RecvCommand command);
  void Do(CollectiveCommand command);
  void Do(HostWorkCommand command);
  void Do(BodyEndedCommand command);
  void TakeFrame(int from, FrameReader reader);
  void TakeMessage(int from, FrameReader& reader);
  void Put(int peer, FrameWriter& frame);
  void PutAll(FrameWriter& frame);
  void Flush();
  void FlushTo(int peer);
  uint32_t StartSend(int peer, const void* data, int64_t bytes, const at::Tensor& keep, Callback over);
  void StartReceive(int peer, uint32_t lane, void* to, int64_t bytes, const at::Tensor& keep, Callback over);
  void OrderFault(const std::string& fault);

  // ---- engine_groups.cc ----
  GroupState& FindGroup(const std::vector<int>& ranks, const std::string& name);
  void TakeGroup(int from, FrameReader& reader);
  void TakePost(int from, FrameReader& reader);
  void TakeData(int from, FrameReader& reader);
  void Advance(GroupState& group);
  void InExchange(GroupState& group, const Callback& over);
  void SendData(int position, DataFrame frame, const void* data, const at::Tensor& keep, Callback sent) override;
  void ReceiveData(const DataFrame& frame, void* to, const at::Tensor& keep, Callback arrived) override;
  at::Tensor TakeScratch() override;
  void GiveScratch(at::Tensor scratch) override;

  // ---- engine_end.cc ----
  // Signs of life, sent and looked for.
  void Tick(Clock::time_point now);
  void Lose(int peer, const std::string& why);
  void TakeFailure(int from, FrameReader& reader);
  void TakeClosing(int from, FrameReader& reader);
  // Tells a failure of this rank to all, and lets everything go.
  void AfterFailure();
  // True when there is nothing more to do.
  bool TryToEnd(Clock::time_point now);
  bool TryToEndFailed(Clock::time_point now);
  void SendClosing();
  std::string Leftover() const;
  // `done` for every other rank that was not lost.
  bool AllOthers(const std::function<bool(const Peer&)>& done) const;
  bool AnyLost() const;

  const std::shared_ptr<Shared> shared_;
  Transport& transport_;
  const int rank_;
  const int size_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<std::pair<std::string, std::vector<int>>, std::unique_ptr<GroupState>> groups_;
  std::map<int, GroupState*> own_groups_;  // by Group::id()
  std::unordered_map<Transport::Ticket, Callback> transfers_;
  Transport::Ticket next_ticket_ = 0;
  std::vector<Transport::Ticket> over_;
  std::vector<at::Tensor> scratch_;
  GroupState* current_ = nullptr;  // during calls of an exchange: its group

  bool broken_ = false;  // the transport threw
  bool body_ended_ = false;
  bool closing_sent_ = false;
  bool bye_sent_ = false;
  bool failure_handled_ = false;
  bool failure_from_peer_ = false;
  std::string own_leftover_;
  Clock::time_point failed_at_;
  Clock::time_point last_tick_, last_status_, last_sign_, last_look_;
  std::string told_action_;
};

void WriteRecord(FrameWriter& writer, const FailureRecord& record);
FailureRecord ReadRecord(FrameReader& reader);

}  // namespace penstock::comm
