#include "comm/remote/group_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace penstock::comm {
namespace {

int Find(const std::vector<int>& ranks, int rank) {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return at == ranks.end() || *at != rank ? -1 : static_cast<int>(at - ranks.begin());
}

}  // namespace

GroupState::GroupState(std::vector<int> ranks, const std::string& name, int self)
    : ranks_(std::move(ranks)),
      position_(Find(ranks_, self)),
      label_(fmt::format("{}{}{{{}}}", name, name.empty() ? "" : " ", fmt::join(ranks_, ", "))),
      next_(ranks_.size(), 0),
      history_(ranks_.size()) {}

int GroupState::PositionOf(int rank) const {
  const int position = Find(ranks_, rank);
  PENSTOCK_CHECK(position >= 0, "rank {} is not a member of group {}", rank, label_);
  return position;
}

Collective& GroupState::At(uint64_t sequence) {
  PENSTOCK_CHECK(sequence >= first_, "collective {} of group {} is over", sequence, label_);
  while (sequence - first_ >= queue_.size()) queue_.push_back(std::make_unique<Collective>(size()));
  return *queue_[sequence - first_];
}

void GroupState::Pop() {
  queue_.pop_front();
  ++first_;
}

std::string GroupState::OrderOf(int position, const TagNamer& namer) const {
  std::vector<std::string> names;
  for (const Signature& s : history_[position]) names.push_back(ToString(s, namer));
  return fmt::format("rank {}: {}{}", ranks_[position], next_[position] > names.size() ? "..., " : "",
                     fmt::join(names, ", "));
}

std::string GroupState::AddPost(int position, RemotePost post, const NamerPtr& namer) {
  const uint64_t sequence = next_[position]++;
  Collective& collective = At(sequence);
  history_[position].push_back(post.signature);
  if (history_[position].size() > size_t{kShownHistory}) history_[position].pop_front();
  collective.posts[position] = std::move(post);
  ++collective.num_posted;
  // Everybody compares others with itself: whoever differs, two find it, and both can name their tags.
  const auto& own = collective.posts[position_];
  for (int i = 0; own && i < size(); ++i) {
    const bool compared_now = position == position_ || i == position;
    if (i == position_ || !compared_now || !collective.posts[i]) continue;
    const int a = std::min(i, position_), b = std::max(i, position_);
    const Signature &x = collective.posts[a]->signature, &y = collective.posts[b]->signature;
    if (x == y) continue;
    return fmt::format("collective {} of group {}: rank {} issues {}, rank {} issues {} (order of {}; order of {})",
                       sequence, label_, ranks_[a], ToString(x, *namer), ranks_[b], ToString(y, *namer),
                       OrderOf(a, *namer), OrderOf(b, *namer));
  }
  return "";
}

void GroupState::UpdateWorks() {
  for (const auto& collective : queue_) {
    if (!collective->work) break;  // nor have those behind it
    int missing = -1;
    for (int i = 0; i < size() && missing < 0; ++i) {
      if (!collective->posts[i]) missing = ranks_[i];
    }
    int awaited = missing;
    if (missing < 0 && collective->exchange && collective->exchange->Awaited() >= 0) {
      awaited = ranks_[collective->exchange->Awaited()];
    }
    collective->work->SetMissing(missing, awaited);
  }
}

std::string GroupState::Leftover(const NamerPtr& namer) const {
  if (queue_.empty() || queue_.front()->num_posted == size() || !queue_.front()->mine) return "";
  const Collective& front = *queue_.front();
  for (int i = 0; i < position_; ++i) {
    if (front.posts[i]) return "";
  }
  std::vector<int> missing;
  for (int i = 0; i < size(); ++i) {
    if (!front.posts[i]) missing.push_back(ranks_[i]);
  }
  return fmt::format(" {} of group {} was never posted by rank {}", ToString(front.posts[position_]->signature, *namer),
                     label_, fmt::join(missing, ", "));
}

}  // namespace penstock::comm
