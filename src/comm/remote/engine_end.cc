// Signs of life, failures, and how a world ends.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "comm/remote/engine.h"

namespace penstock::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How often the loop looks after its peers, and how soon an action that changed is told.
constexpr milliseconds kTick{5};
constexpr milliseconds kStatusInterval{50};
constexpr milliseconds kLookInterval{100};
// A loop that did not run for so long was stopped itself, with the machine or by a signal: it has heard nobody, and
// that says nothing about them.
constexpr seconds kOwnGap{1};

// Of two failures at the same time, the one that is no consequence and then the one of the lower rank.
bool Before(const FailureRecord& a, const FailureRecord& b) {
  const auto key = [](const FailureRecord& r) { return std::tuple(r.kind == FailureRecord::Kind::peer_lost, r.rank); };
  return key(a) < key(b);
}

}  // namespace

void WriteRecord(FrameWriter& writer, const FailureRecord& record) {
  writer.Put(record.kind).Put(record.rank).Put(record.lost_rank).PutBytes(record.text);
}

FailureRecord ReadRecord(FrameReader& reader) {
  FailureRecord record;
  record.kind = reader.Get<FailureRecord::Kind>();
  record.rank = reader.Get<int>();
  record.lost_rank = reader.Get<int>();
  record.text = reader.GetBytes();
  return record;
}

void Engine::Tick(Clock::time_point now) {
  if (now - last_tick_ < kTick) return;
  const auto gap = now - last_tick_;
  last_tick_ = now;
  if (gap > kOwnGap) {
    for (const auto& peer : peers_) peer->heard += gap;
  }
  const RemoteOptions& options = shared_->options();
  // A sign of life with the current action: at once when it changed, but not so often that many ranks drown in them.
  const milliseconds status_interval = std::max(kStatusInterval, milliseconds(3 * size_));
  if (now - last_status_ >= status_interval) {
    last_status_ = now;
    RankStatus status = shared_->status().Get();
    if (status.action != told_action_ || now - last_sign_ >= options.heartbeat) {
      last_sign_ = now;
      FrameWriter frame;
      frame.Put(FrameKind::status).PutBytes(status.action).Put(status.seconds);
      PutAll(frame);
      told_action_ = std::move(status.action);
    }
  }
  const bool look = now - last_look_ >= kLookInterval;
  if (look) last_look_ = now;
  for (int r = 0; r < size_; ++r) {
    const Peer& peer = *peers_[r];
    if (r == rank_ || peer.lost || peer.closed) continue;
    if (now - peer.heard > options.silence) {
      Lose(r, fmt::format("nothing was heard of it for {:.1f} s",
                          std::chrono::duration<double>(now - peer.heard).count()));
    } else if (look && options.why_gone) {
      if (const std::string why = options.why_gone(r); !why.empty()) Lose(r, why);
    }
  }
  if (look && options.why_end) {
    if (const std::string why = options.why_end(); !why.empty())
      shared_->Fail(rank_, std::make_exception_ptr(WorldError(why)));
  }
}

void Engine::Lose(int peer, const std::string& why) {
  peers_[peer]->lost = true;
  peers_[peer]->outbox.clear();
  const RankStatus last = shared_->StatusOf(peer);
  const std::string doing = last.finished ? " after its end"
                            : last.action.empty()
                                ? ""
                                : fmt::format(" while at '{}' since {:.1f} s", last.action, last.seconds);
  shared_->Fail(peer, std::make_exception_ptr(PeerLost(peer, fmt::format("lost{}: {}", doing, why))));
}

void Engine::TakeFailure(int from, FrameReader& reader) {
  const FailureRecord record = ReadRecord(reader);
  if (shared_->failed()) return;
  failure_from_peer_ = true;
  shared_->Fail(record.rank < 0 ? from : record.rank, ExceptionOf(record));
}

void Engine::AfterFailure() {
  failure_handled_ = true;
  failed_at_ = Clock::now();
  if (!failure_from_peer_) {
    FrameWriter frame;
    frame.Put(FrameKind::failure);
    WriteRecord(frame, shared_->failure().Record());
    PutAll(frame);
  }
  transport_.Abandon();
  transfers_.clear();
  for (const auto& [key, group] : groups_) group->Clear();
  shared_->Notify();
}

bool Engine::AllOthers(const std::function<bool(const Peer&)>& done) const {
  for (int r = 0; r < size_; ++r) {
    if (r != rank_ && !peers_[r]->lost && !done(*peers_[r])) return false;
  }
  return true;
}

bool Engine::AnyLost() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->lost; });
}

std::string Engine::Leftover() const {
  std::string text = own_leftover_;
  for (const auto& peer : peers_) text += peer->channel.Leftover(shared_->namer());
  for (const auto& [key, group] : groups_) {
    if (group->position() >= 0) text += group->Leftover(shared_->namer());
  }
  return text;
}

void Engine::SendClosing() {
  closing_sent_ = true;
  FrameWriter frame;
  frame.Put(FrameKind::closing).Put(shared_->failed());
  if (shared_->failed()) {
    WriteRecord(frame, shared_->failure().Record());
  } else {
    frame.PutBytes(own_leftover_);
  }
  PutAll(frame);
}

void Engine::TakeClosing(int from, FrameReader& reader) {
  Peer& peer = *peers_[from];
  peer.has_failure = reader.Get<bool>();
  if (peer.has_failure) {
    peer.failure = ReadRecord(reader);
    peer.closed = true;
    if (!shared_->failed()) {  // it failed and its failure frame was for others only
      failure_from_peer_ = true;
      shared_->Fail(peer.failure.rank, ExceptionOf(peer.failure));
    }
    return;
  }
  peer.leftover = reader.GetBytes();
  peer.closed = true;
}

bool Engine::TryToEnd(Clock::time_point now) {
  if (!body_ended_) return false;
  if (failure_handled_) return TryToEndFailed(now);
  if (!closing_sent_) {
    if (!AllOthers([](const Peer& peer) { return peer.finished; })) return false;
    own_leftover_ = Leftover();
    SendClosing();
  }
  if (!AllOthers([](const Peer& peer) { return peer.closed; })) return false;
  std::string left;
  for (int r = 0; r < size_; ++r) left += r == rank_ ? own_leftover_ : peers_[r]->leftover;
  if (!left.empty()) {
    failure_from_peer_ = true;  // all see it
    shared_->Fail(-1, std::make_exception_ptr(OrderMismatch("all ranks have ended, but" + left)));
    return false;
  }
  if (!transfers_.empty()) return false;
  if (!bye_sent_) {
    bye_sent_ = true;
    FrameWriter frame;
    frame.Put(FrameKind::bye);
    PutAll(frame);
    Flush();
  }
  return AllOthers([](const Peer& peer) { return peer.bye; }) && transport_.FramesSent();
}

bool Engine::TryToEndFailed(Clock::time_point now) {
  if (!closing_sent_ && !broken_) {
    SendClosing();
    Flush();
  }
  const bool closed = AllOthers([](const Peer& peer) { return peer.closed; });
  const RemoteOptions& options = shared_->options();
  // The others may be busy for `grace`; then they end themselves, and are not heard any more.
  const bool late = now - failed_at_ > options.world.grace + options.silence;
  if (!closed && !late && !broken_) return false;
  if (!transport_.FramesSent() && now - failed_at_ < options.world.grace + options.silence + seconds(1) && !AnyLost() &&
      !broken_) {
    return false;
  }
  FailureRecord agreed = shared_->failure().Record();
  for (const auto& peer : peers_) {
    if (peer->has_failure && Before(peer->failure, agreed)) agreed = peer->failure;
  }
  shared_->failure().Replace(agreed);
  if (!closed) broken_ = true;
  return true;
}

}  // namespace penstock::comm
