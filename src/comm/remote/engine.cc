#include "comm/remote/engine.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <variant>

#include "comm/common/handover.h"

namespace penstock::comm {
namespace {

using std::chrono::microseconds;

// The measured compromise between latency and the core of a computing rank (docs/decisions.md).
constexpr int kPolls = 200;
constexpr microseconds kShortestSleep{20};
constexpr microseconds kLongestSleep{200};
constexpr size_t kFlushBytes = 32 << 10;

enum class Placed : uint8_t { undefined, in_frame, transfer };

}  // namespace

Engine::Engine(std::shared_ptr<Shared> shared, Transport& transport)
    : shared_(std::move(shared)), transport_(transport), rank_(transport.rank()), size_(transport.size()) {
  const auto now = Clock::now();
  for (int r = 0; r < size_; ++r) {
    peers_.push_back(std::make_unique<Peer>(InChannel(r, rank_)));
    peers_.back()->heard = now;
  }
  last_tick_ = last_status_ = last_sign_ = last_look_ = now;
}

Engine::~Engine() = default;

bool Engine::Run() {
  int idle = 0;
  microseconds sleep = kShortestSleep;
  for (;;) {
    bool worked = false;
    bool ended = false;
    try {
      worked = Step(idle < kPolls ? microseconds(0) : sleep);
    } catch (...) {
      broken_ = true;
      shared_->Fail(rank_, std::current_exception());
    }
    try {
      if (shared_->failed() && !failure_handled_) AfterFailure();
      ended = TryToEnd(Clock::now());
      if (!broken_) Flush();
    } catch (...) {
      broken_ = true;
      shared_->Fail(rank_, std::current_exception());
    }
    if (ended) break;
    if (idle >= kPolls && !worked) sleep = std::min(sleep * 2, kLongestSleep);
    idle = worked ? 0 : idle + 1;
    if (worked) sleep = kShortestSleep;
  }
  return !broken_ && !AnyLost();
}

bool Engine::Step(microseconds longest) {
  bool worked = false;
  for (Command& command : shared_->TakeCommands(longest)) {
    worked = true;
    if (shared_->failed() && !std::holds_alternative<BodyEndedCommand>(command)) continue;
    std::visit([this](auto& c) { Do(std::move(c)); }, command);
  }
  if (broken_) return worked;
  Flush();
  int from = 0;
  std::string frames;
  while (transport_.TakeFrame(from, frames)) {
    peers_[from]->heard = Clock::now();
    FrameReader reader(frames);
    while (!reader.AtEnd()) TakeFrame(from, FrameReader(reader.GetBytes()));
    worked = true;
  }
  over_.clear();
  transport_.Poll(over_);
  for (const Transport::Ticket ticket : over_) {
    worked = true;
    const auto transfer = transfers_.find(ticket);
    if (transfer == transfers_.end()) continue;  // let go after a failure
    const Callback over = std::move(transfer->second);
    transfers_.erase(transfer);
    over();
  }
  Tick(Clock::now());
  return worked;
}

void Engine::TakeFrame(int from, FrameReader reader) {
  const auto kind = reader.Get<FrameKind>();
  Peer& peer = *peers_[from];
  if (shared_->failed() &&
      (kind == FrameKind::message || kind == FrameKind::group || kind == FrameKind::post || kind == FrameKind::data)) {
    return;
  }
  switch (kind) {
    case FrameKind::message:
      return TakeMessage(from, reader);
    case FrameKind::group:
      return TakeGroup(from, reader);
    case FrameKind::post:
      return TakePost(from, reader);
    case FrameKind::data:
      return TakeData(from, reader);
    case FrameKind::status: {
      const std::string action(reader.GetBytes());
      return shared_->SetPeerStatus(from, action, reader.Get<double>());
    }
    case FrameKind::host_work:
      return shared_->SetPeerHostWork(from, reader.Get<bool>());
    case FrameKind::failure:
      return TakeFailure(from, reader);
    case FrameKind::finished:
      peer.finished = true;
      return shared_->SetPeerFinished(from);
    case FrameKind::closing:
      return TakeClosing(from, reader);
    case FrameKind::bye:
      peer.bye = true;
      return;
  }
  PENSTOCK_CHECK(false, "a frame of kind {}", static_cast<int>(kind));
}

void Engine::Put(int peer, FrameWriter& frame) {
  if (peers_[peer]->lost) return;
  FrameWriter sized;
  sized.PutBytes(frame.Take());
  std::string& outbox = peers_[peer]->outbox;
  outbox += sized.Take();
  if (outbox.size() >= kFlushBytes) FlushTo(peer);
}

void Engine::PutAll(FrameWriter& frame) {
  const std::string bytes = frame.Take();
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || peers_[r]->lost) continue;
    FrameWriter sized;
    sized.PutBytes(bytes);
    peers_[r]->outbox += sized.Take();
  }
}

void Engine::Flush() {
  for (int r = 0; r < size_; ++r) {
    if (!peers_[r]->outbox.empty()) FlushTo(r);
  }
}

void Engine::FlushTo(int peer) {
  std::string frames;
  frames.swap(peers_[peer]->outbox);
  transport_.SendFrame(peer, std::move(frames));
}

uint32_t Engine::StartSend(int peer, const void* data, int64_t bytes, const at::Tensor& keep, Callback over) {
  const uint32_t lane = peers_[peer]->next_lane++;
  transfers_.emplace(next_ticket_, std::move(over));
  transport_.StartSend(peer, lane, data, bytes, keep, next_ticket_++);
  return lane;
}

void Engine::StartReceive(int peer, uint32_t lane, void* to, int64_t bytes, const at::Tensor& keep, Callback over) {
  transfers_.emplace(next_ticket_, std::move(over));
  transport_.StartReceive(peer, lane, to, bytes, keep, next_ticket_++);
}

void Engine::OrderFault(const std::string& fault) {
  if (!fault.empty()) shared_->Fail(rank_, std::make_exception_ptr(OrderMismatch(fault)));
}

void Engine::Do(SendCommand command) {
  FrameWriter frame;
  frame.Put(FrameKind::message).Put(command.tag).Put(static_cast<uint32_t>(command.tensors.size()));
  for (const at::Tensor& tensor : command.tensors) {
    if (!tensor.defined()) {
      frame.Put(Placed::undefined);
      continue;
    }
    const int64_t bytes = BytesOf(tensor);
    frame.Put(bytes > kInlineBytes ? Placed::transfer : Placed::in_frame);
    frame.Put(static_cast<int8_t>(tensor.scalar_type())).PutList(tensor.sizes().vec());
    const void* data = tensor.const_data_ptr();
    if (bytes > kInlineBytes) {
      frame.Put(StartSend(command.peer, data, bytes, tensor, [] {}));
    } else {
      frame.PutBytes({static_cast<const char*>(data), static_cast<size_t>(bytes)});
    }
  }
  Put(command.peer, frame);
}

void Engine::TakeMessage(int from, FrameReader& reader) {
  auto message = std::make_shared<Incoming>();
  message->tag = reader.Get<Tag>();
  const auto count = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < count; ++i) {
    const auto placed = reader.Get<Placed>();
    if (placed == Placed::undefined) {
      message->tensors.emplace_back();
      continue;
    }
    const auto type = static_cast<at::ScalarType>(reader.Get<int8_t>());
    at::Tensor tensor = at::empty(reader.GetList<int64_t>(), at::TensorOptions(type));
    if (placed == Placed::in_frame) {
      const std::string_view bytes = reader.GetBytes();
      PENSTOCK_CHECK_EQ(static_cast<int64_t>(bytes.size()), BytesOf(tensor));
      if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    } else {
      ++message->missing_parts;
      StartReceive(from, reader.Get<uint32_t>(), tensor.mutable_data_ptr(), BytesOf(tensor), tensor,
                   [message] { message->PartArrived(); });
    }
    message->tensors.push_back(std::move(tensor));
  }
  OrderFault(peers_[from]->channel.Arrive(std::move(message), shared_->namer()));
}

void Engine::Do(RecvCommand command) {
  InChannel& channel = peers_[command.work->peer()]->channel;
  OrderFault(channel.Receive(std::move(command.work)));
}

void Engine::Do(HostWorkCommand command) {
  FrameWriter frame;
  frame.Put(FrameKind::host_work).Put(command.now);
  PutAll(frame);
}

void Engine::Do(BodyEndedCommand command) {
  body_ended_ = true;
  own_leftover_ = std::move(command.leftover);
  FrameWriter frame;
  frame.Put(FrameKind::finished);
  PutAll(frame);
}

}  // namespace penstock::comm
