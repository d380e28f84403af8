#include "comm/threads/channel.h"

#include <fmt/format.h>

namespace penstock::comm {
void RecvWork::Wait() { world_->Wait(rank_, *this, std::chrono::steady_clock::now()); }

std::vector<at::Tensor> RecvWork::TakeTensors() {
  Wait();
  return std::exchange(tensors_, {});
}

std::string RecvWork::Describe() const { return fmt::format("receive '{}' from rank {}", (*namer_)(tag_), peer_); }

bool Channel::Match(std::string& fault) {
  bool matched = false;
  while (!messages_.empty() && !receives_.empty()) {
    Message& message = messages_.front();
    RecvWork& receive = *receives_.front();
    if (message.tag != receive.tag_) {
      const TagNamer& namer = *namer_;
      fault = fmt::format(
          "message {} from rank {} to rank {}: rank {} sent '{}', rank {} expects '{}' "
          "(order of sends: {}; order of receives: {})",
          matched_, from_, to_, from_, namer(message.tag), to_, namer(receive.tag_), sent_.ToString(namer),
          expected_.ToString(namer));
      return matched;
    }
    receive.tensors_ = std::move(message.tensors);
    receive.done_.store(true, std::memory_order_release);
    messages_.pop_front();
    receives_.pop_front();
    ++matched_;
    matched = true;
  }
  return matched;
}

void Channel::Send(const Tag& tag, std::vector<at::Tensor> tensors, const NamerPtr& namer) {
  std::string fault;
  bool matched;
  {
    std::lock_guard lock(mutex_);
    namer_ = namer;
    sent_.Add(tag);
    messages_.push_back({tag, std::move(tensors)});
    matched = Match(fault);
  }
  if (!fault.empty()) world_->FailWith(from_, OrderMismatch(fault));
  if (matched) world_->Notify(to_);
}

void Channel::Receive(std::shared_ptr<RecvWork> work) {
  std::string fault;
  {
    std::lock_guard lock(mutex_);
    namer_ = work->namer_;
    expected_.Add(work->tag_);
    receives_.push_back(std::move(work));
    Match(fault);
  }
  if (!fault.empty()) world_->FailWith(to_, OrderMismatch(fault));
}

std::string Channel::Leftover() {
  std::lock_guard lock(mutex_);
  if (!messages_.empty()) {
    return fmt::format(" rank {} never received {} message{} of rank {} (order of sends: {})", to_, messages_.size(),
                       messages_.size() > 1 ? "s" : "", from_, sent_.ToString(*namer_));
  }
  if (!receives_.empty()) {
    return fmt::format(" rank {} never sent '{}', which rank {} posted a receive for", from_,
                       (*namer_)(receives_.front()->tag_), to_);
  }
  return "";
}

void Channel::Clear() {
  std::lock_guard lock(mutex_);
  messages_.clear();
  receives_.clear();
}

}  // namespace penstock::comm
