#include "comm/remote/in_channel.h"

#include <fmt/format.h>

namespace penstock::comm {

void Incoming::PartArrived() {
  --missing_parts;
  Deliver();
}

void Incoming::Deliver() {
  if (missing_parts == 0 && work) std::exchange(work, nullptr)->Finish(std::move(tensors));
}

std::string InChannel::Arrive(std::shared_ptr<Incoming> message, const NamerPtr& namer) {
  sent_.Add(message->tag);
  messages_.push_back(std::move(message));
  return Match(namer);
}

std::string InChannel::Receive(std::shared_ptr<RemoteRecvWork> work) {
  expected_.Add(work->tag());
  const NamerPtr namer = work->namer();
  receives_.push_back(work);
  std::string fault = Match(namer);
  if (!receives_.empty()) work->SetMissing(from_, from_);
  return fault;
}

std::string InChannel::Match(const NamerPtr& namer) {
  while (!messages_.empty() && !receives_.empty()) {
    Incoming& message = *messages_.front();
    const Tag expected = receives_.front()->tag();
    if (message.tag != expected) {
      return fmt::format(
          "message {} from rank {} to rank {}: rank {} sent '{}', rank {} expects '{}' "
          "(order of sends: {}; order of receives: {})",
          matched_, from_, to_, from_, (*namer)(message.tag), to_, (*namer)(expected), sent_.ToString(*namer),
          expected_.ToString(*namer));
    }
    receives_.front()->SetMissing(-1, from_);
    message.work = std::move(receives_.front());
    receives_.pop_front();
    const std::shared_ptr<Incoming> taken = std::move(messages_.front());
    messages_.pop_front();
    ++matched_;
    taken->Deliver();
  }
  return "";
}

std::string InChannel::Leftover(const NamerPtr& namer) const {
  if (!messages_.empty()) {
    return fmt::format(" rank {} never received {} message{} of rank {} (order of sends: {})", to_, messages_.size(),
                       messages_.size() > 1 ? "s" : "", from_, sent_.ToString(*namer));
  }
  if (!receives_.empty()) {
    return fmt::format(" rank {} never sent '{}', which rank {} posted a receive for", from_,
                       (*receives_.front()->namer())(receives_.front()->tag()), to_);
  }
  return "";
}

}  // namespace penstock::comm
