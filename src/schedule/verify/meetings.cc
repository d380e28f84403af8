#include "schedule/verify/meetings.h"

#include <algorithm>
#include <unordered_map>

namespace penstock::schedule::verify {
namespace {

// What a message says, the same on both sides.
Key Payload(Key key) {
  key.kind = Kind::send;
  return key;
}

// One channel: its messages in the order of the sender and of the receiver.
struct Channel {
  std::vector<int32_t> sends, recvs;
};

class Matcher {
 public:
  Matcher(const Schedule& schedule, const Numbering& numbering, Faults& faults)
      : s_(schedule), numbering_(numbering), faults_(faults) {
    meetings_.partner.assign(numbering.size(), -1);
    meetings_.collective_of.assign(numbering.size(), -1);
  }

  Meetings Run() {
    std::unordered_map<uint64_t, size_t> index;  // (from, to) -> channel, in order of first use
    std::vector<Channel> channels;
    std::vector<std::vector<std::vector<int32_t>>> groups(s_.groups.size());  // [group][place of the rank]
    for (size_t g = 0; g < groups.size(); ++g) groups[g].resize(s_.groups[g].size());
    for (int r = 0; r < s_.num_ranks(); ++r) {
      for (int i = 0; i < static_cast<int>(s_.ranks[r].size()); ++i) {
        const Action& a = s_.ranks[r][i];
        const int32_t node = numbering_.of({r, i});
        if (a.key.kind == Kind::send || a.key.kind == Kind::recv) {
          const uint64_t from = a.key.kind == Kind::send ? r : a.peer_or_group;
          const uint64_t to = a.key.kind == Kind::send ? a.peer_or_group : r;
          const auto [it, is_new] = index.try_emplace((from << 32) | to, channels.size());
          if (is_new) channels.emplace_back();
          auto& channel = channels[it->second];
          (a.key.kind == Kind::send ? channel.sends : channel.recvs).push_back(node);
        } else if (a.key.kind == Kind::collective) {
          const auto& group = s_.groups[a.peer_or_group];
          groups[a.peer_or_group][std::lower_bound(group.begin(), group.end(), r) - group.begin()].push_back(node);
        }
      }
    }
    for (const Channel& channel : channels) Match(channel);
    for (size_t g = 0; g < groups.size(); ++g) Match(static_cast<int>(g), groups[g]);
    return std::move(meetings_);
  }

 private:
  const Action& At(int32_t node) const { return s_.at(numbering_.ref(node)); }

  void Match(const Channel& channel) {
    // What one side has and the other has not; counted, since a message may occur twice.
    std::unordered_map<Key, int> balance;
    for (const int32_t n : channel.sends) ++balance[Payload(At(n).key)];
    for (const int32_t n : channel.recvs) --balance[Payload(At(n).key)];
    std::vector<int32_t> sends, recvs;
    // The last of equal messages is the one too many.
    const auto keep = [&](const std::vector<int32_t>& nodes, int sign, std::vector<int32_t>& kept) {
      for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
        int& left = balance[Payload(At(*it).key)];
        if (left * sign > 0) {
          left -= sign;
          Unmatched(*it);
        } else {
          kept.push_back(*it);
        }
      }
      std::reverse(kept.begin(), kept.end());
    };
    keep(channel.sends, 1, sends);
    keep(channel.recvs, -1, recvs);
    bool reported = false;
    for (size_t k = 0; k < sends.size(); ++k) {
      meetings_.partner[sends[k]] = recvs[k];
      meetings_.partner[recvs[k]] = sends[k];
      if (reported || Payload(At(sends[k]).key) == Payload(At(recvs[k]).key)) continue;
      reported = true;
      faults_.Add(FaultCode::reordered_messages, numbering_.ref(recvs[k]),
                  "message {} from rank {} to rank {}: rank {} sends '{}', rank {} expects '{}'", k,
                  numbering_.rank(sends[k]), numbering_.rank(recvs[k]), numbering_.rank(sends[k]),
                  ToString(At(sends[k])), numbering_.rank(recvs[k]), ToString(At(recvs[k])));
    }
  }

  void Unmatched(int32_t node) {
    const Action& a = At(node);
    const int r = numbering_.rank(node);
    if (a.key.kind == Kind::send) {
      faults_.Add(FaultCode::unmatched_message, numbering_.ref(node),
                  "'{}' on rank {} has no receiver: rank {} has no receive for it", ToString(a), r, a.peer_or_group);
    } else {
      faults_.Add(FaultCode::unmatched_message, numbering_.ref(node),
                  "'{}' on rank {} has no sender: rank {} does not send it", ToString(a), r, a.peer_or_group);
    }
  }

  void Match(int group, const std::vector<std::vector<int32_t>>& lists) {
    size_t count = 0;
    for (const auto& list : lists) count = std::max(count, list.size());
    for (size_t k = 0; k < count; ++k) {
      Meetings::Collective meeting;
      for (size_t place = 0; place < lists.size(); ++place) {
        if (k < lists[place].size()) {
          meeting.nodes.push_back(lists[place][k]);
          meetings_.collective_of[lists[place][k]] = static_cast<int32_t>(meetings_.collectives.size());
        } else {
          meeting.missing_rank = s_.groups[group][place];
        }
      }
      meetings_.collectives.push_back(std::move(meeting));
    }
    for (size_t place = 1; place < lists.size(); ++place) {
      const auto& a = lists[0];
      const auto& b = lists[place];
      size_t k = 0;
      while (k < a.size() && k < b.size() && At(a[k]).key == At(b[k]).key) ++k;
      if (k == a.size() && k == b.size()) continue;
      faults_.Add(
          FaultCode::collective_order, k < b.size() ? numbering_.ref(b[k]) : ActionRef{s_.groups[group][place], -1},
          "ranks {} and {} issue the collectives of group {} in different orders from number {} on: rank {}: {}; rank "
          "{}: {}",
          s_.groups[group][0], s_.groups[group][place], group, k, s_.groups[group][0], Order(a, k),
          s_.groups[group][place], Order(b, k));
    }
  }

  // The collectives from number `from` on, a few of them.
  std::string Order(const std::vector<int32_t>& nodes, size_t from) const {
    constexpr size_t kShown = 4;
    std::string text;
    for (size_t k = from; k < nodes.size() && k < from + kShown; ++k)
      text += fmt::format("{}'{}'", text.empty() ? "" : ", ", ToString(At(nodes[k]).key));
    if (text.empty()) return "none";
    if (nodes.size() > from + kShown) text += fmt::format(" and {} more", nodes.size() - from - kShown);
    return text;
  }

  const Schedule& s_;
  const Numbering& numbering_;
  Faults& faults_;
  Meetings meetings_;
};

}  // namespace

Meetings FindMeetings(const Schedule& schedule, const Numbering& numbering, Faults& faults) {
  return Matcher(schedule, numbering, faults).Run();
}

}  // namespace penstock::schedule::verify
