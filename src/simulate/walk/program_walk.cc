#include "simulate/walk/program_walk.h"

#include <algorithm>
#include <unordered_map>

#include "simulate/walk/action_classes.h"

namespace penstock::simulate {

using schedule::Action;
using schedule::Kind;
using schedule::Schedule;
using schedule::Transport;

namespace {

constexpr uint32_t kNone = ~uint32_t{0};

template <typename Time>
class ProgramWalk {
 public:
  ProgramWalk(const Schedule& schedule, const schedule::ActionCosts<Time>& costs, Transport transport,
              Times<Time>& times)
      : s_(schedule), costs_(costs), transport_(transport), classes_(schedule, transport), times_(times) {}

  bool Run() {
    if (!classes_.regular() || !classes_.has_messages() || !s_.edges.empty()) return false;
    if (!FindChannels()) return false;
    FindPrices();
    lane_end_.assign(classes_.num_lanes(), Time(0));
    cells_.assign(classes_.num_cells(), Cell{});
    next_.assign(s_.num_ranks(), 0);
    meetings_.resize(s_.groups.size());
    std::vector<int32_t>& runnable = runnable_;
    for (int rank = s_.num_ranks(); rank-- > 0;) runnable.push_back(rank);
    while (!runnable.empty() && !refused_) {
      const int32_t rank = runnable.back();
      runnable.pop_back();
      Advance(rank);
    }
    if (refused_) return false;
    for (int rank = 0; rank < s_.num_ranks(); ++rank)
      if (next_[rank] != s_.ranks[rank].size()) return false;
    return std::all_of(channels_.begin(), channels_.end(),
                       [](const Channel& c) { return c.head == c.queue.size() && c.waiting < 0; });
  }

 private:
  // When the last writer of a buffer, and the readers since, were over.
  struct Cell {
    Time written = 0, read = 0;
  };
  struct Message {
    uint32_t class_of_send = 0;
    int32_t micro_batch = 0;
    Time arrival = 0;
  };
  // One ordered pair of ranks. Buffered: messages under way. Rendezvous: the one side that is there.
  struct Channel {
    std::vector<Message> queue;
    size_t head = 0;
    int32_t waiting = -1;                                 // rank that stands before it
    Time ready = 0;                                       // of that rank, rendezvous only
    uint32_t matched_send = kNone, matched_recv = kNone;  // classes that were compared already
  };
  struct PriceOfClass {
    Time duration = 0;
    Time latency = 0;      // sends
    uint32_t channel = 0;  // messages
  };
  struct Member {
    int32_t rank = 0;
    Time ready = 0;
  };

  bool FindChannels() {
    std::unordered_map<uint64_t, uint32_t> found;
    const auto& classes = classes_.classes();
    price_.resize(classes.size());
    for (size_t c = 0; c < classes.size(); ++c) {
      const Action& a = s_.at(classes[c].sample);
      const int32_t rank = classes[c].sample.rank, other = a.peer_or_group;
      if (a.key.kind == Kind::collective) {
        if (other < 0 || other >= static_cast<int32_t>(s_.groups.size())) return false;
        const auto& group = s_.groups[other];
        if (std::find(group.begin(), group.end(), rank) == group.end()) return false;
      }
      if (a.key.kind != Kind::send && a.key.kind != Kind::recv) continue;
      if (other < 0 || other >= s_.num_ranks()) return false;
      const auto from = static_cast<uint32_t>(a.key.kind == Kind::send ? rank : other);
      const auto to = static_cast<uint32_t>(a.key.kind == Kind::send ? other : rank);
      const auto [it, is_new] = found.try_emplace(uint64_t{from} << 32 | to, static_cast<uint32_t>(channels_.size()));
      if (is_new) channels_.emplace_back();
      price_[c].channel = it->second;
    }
    return true;
  }

  void FindPrices() {
    per_action_ = costs_.depends_on_micro_batch();
    if (per_action_) return;
    for (size_t c = 0; c < price_.size(); ++c) {
      const schedule::ActionRef sample = classes_.classes()[c].sample;
      const Action& a = s_.at(sample);
      price_[c].duration = costs_.Duration(s_, sample.rank, a);
      if (a.key.kind == Kind::send) price_[c].latency = costs_.Latency(s_, sample.rank, a.peer_or_group, a);
    }
  }
  Time Duration(int32_t rank, uint32_t c, const Action& a) const {
    return per_action_ ? costs_.Duration(s_, rank, a) : price_[c].duration;
  }
  Time Latency(int32_t rank, uint32_t c, const Action& a) const {
    return per_action_ ? costs_.Latency(s_, rank, a.peer_or_group, a) : price_[c].latency;
  }

  // Walks on until the rank has to wait.
  void Advance(const int32_t rank) {
    const auto& list = s_.ranks[rank];
    const uint32_t* class_of = classes_.of_rank(rank).data();
    Interval<Time>* times = times_[rank].data();
    const bool rendezvous = transport_ == Transport::blocking;
    for (size_t& i = next_[rank]; i < list.size();) {
      const Action& action = list[i];
      const uint32_t c = class_of[i];
      const Kind kind = action.key.kind;
      const Time ready = ReadyOf(rank, c, action);
      Time end = ready;
      if (kind == Kind::collective) {
        Join(rank, action, ready);
        return;
      }
      if (rendezvous && (kind == Kind::send || kind == Kind::recv)) {
        if (!Rendezvous(rank, c, action, ready)) return;
        continue;  // it went on
      }
      if (kind == Kind::recv) {
        Channel& channel = channels_[price_[c].channel];
        if (channel.head == channel.queue.size()) {
          channel.waiting = rank;
          return;
        }
        const Message& message = channel.queue[channel.head];
        if (!Matches(channel, message.class_of_send, message.micro_batch, c, action)) {
          refused_ = true;
          return;
        }
        end = std::max(ready + Duration(rank, c, action), message.arrival);
        if (++channel.head == channel.queue.size()) {
          channel.queue.clear();
          channel.head = 0;
        }
      } else {
        end = ready + Duration(rank, c, action);
        if (kind == Kind::send) {
          Channel& channel = channels_[price_[c].channel];
          channel.queue.push_back({c, action.key.micro_batch, end + Latency(rank, c, action)});
          if (channel.waiting >= 0) {
            runnable_.push_back(channel.waiting);
            channel.waiting = -1;
          }
        }
      }
      times[i] = {ready, end};
      Finish(rank, c, action, end);
      ++i;
    }
  }

  size_t CellOf(const CellUse& use, size_t first, int32_t m) const {
    return first + use.cell + (use.per_micro_batch ? static_cast<size_t>(m) : 0);
  }

  // When the stream has come to the action and the hazards inside the rank are over.
  Time ReadyOf(int32_t rank, uint32_t c, const Action& action) const {
    const ActionClass& k = classes_.classes()[c];
    Time ready = lane_end_[k.lane];
    if (k.first_use == k.end_use) return ready;
    const size_t first = classes_.first_cell(rank);
    const int32_t m = action.key.micro_batch - classes_.first_micro_batch(rank);
    const CellUse* const uses = classes_.uses().data();
    for (uint32_t u = k.first_use; u < k.end_use; ++u) {
      const Cell& cell = cells_[CellOf(uses[u], first, m)];
      ready = std::max(ready, cell.written);
      if (!uses[u].read) ready = std::max(ready, cell.read);
    }
    return ready;
  }

  void Finish(int32_t rank, uint32_t c, const Action& action, const Time& end) {
    const ActionClass& k = classes_.classes()[c];
    lane_end_[k.lane] = end;
    if (k.first_use == k.end_use) return;
    const size_t first = classes_.first_cell(rank);
    const int32_t m = action.key.micro_batch - classes_.first_micro_batch(rank);
    const CellUse* const uses = classes_.uses().data();
    for (uint32_t u = k.first_use; u < k.end_use; ++u) {
      Cell& cell = cells_[CellOf(uses[u], first, m)];
      if (uses[u].read)
        cell.read = std::max(cell.read, end);
      else
        cell.written = end;
    }
  }

  // Equal in everything but the direction.
  bool Matches(Channel& channel, uint32_t send_class, int32_t sent, uint32_t recv_class, const Action& recv) const {
    if (sent != recv.key.micro_batch) return false;
    if (channel.matched_send == send_class && channel.matched_recv == recv_class) return true;
    schedule::Key key = recv.key;
    key.kind = Kind::send;
    schedule::Key other = s_.at(classes_.classes()[send_class].sample).key;
    other.micro_batch = sent;
    if (key != other) return false;
    channel.matched_send = send_class;
    channel.matched_recv = recv_class;
    return true;
  }

  // The first of the two waits; the second ends both. True when this rank goes on.
  bool Rendezvous(int32_t rank, uint32_t c, const Action& action, const Time& ready) {
    Channel& channel = channels_[price_[c].channel];
    if (channel.waiting < 0) {
      channel.waiting = rank;
      channel.ready = ready;
      return false;
    }
    const int32_t other = channel.waiting;
    const Action& theirs = s_.ranks[other][next_[other]];
    const uint32_t d = classes_.of_rank(other)[next_[other]];
    channel.waiting = -1;
    const bool sends = action.key.kind == Kind::send;
    const bool matches = other != rank && sends != (theirs.key.kind == Kind::send) &&
                         (sends ? Matches(channel, c, action.key.micro_batch, d, theirs)
                                : Matches(channel, d, theirs.key.micro_batch, c, action));
    if (!matches) {
      refused_ = true;
      return false;
    }
    Time mine = Duration(rank, c, action), other_duration = Duration(other, d, theirs);
    (sends ? mine : other_duration) += sends ? Latency(rank, c, action) : Latency(other, d, theirs);
    const Time end = std::max(ready, channel.ready) + std::max({Time(0), mine, other_duration});
    Pass(rank, c, action, ready, end);
    Pass(other, d, theirs, channel.ready, end);
    runnable_.push_back(other);
    return true;
  }

  void Pass(int32_t rank, uint32_t c, const Action& action, const Time& start, const Time& end) {
    times_[rank][next_[rank]] = {start, end};
    Finish(rank, c, action, end);
    ++next_[rank];
  }

  // A collective: the last member that comes ends it for all.
  void Join(int32_t rank, const Action& action, const Time& ready) {
    std::vector<Member>& members = meetings_[action.peer_or_group];
    if (!members.empty()) {
      const int32_t first = members.front().rank;
      if (s_.ranks[first][next_[first]].key != action.key) refused_ = true;
    }
    members.push_back({rank, ready});
    if (refused_ || members.size() < s_.groups[action.peer_or_group].size()) return;
    Time longest = 0, start = 0;
    for (const Member& m : members) {
      longest =
          std::max(longest, Duration(m.rank, classes_.of_rank(m.rank)[next_[m.rank]], s_.ranks[m.rank][next_[m.rank]]));
      start = std::max(start, m.ready);
    }
    const Time end = start + longest;
    for (size_t i = members.size(); i-- > 0;) {
      const Member m = members[i];
      const size_t at = next_[m.rank];
      Pass(m.rank, classes_.of_rank(m.rank)[at], s_.ranks[m.rank][at], m.ready, end);
      runnable_.push_back(m.rank);
    }
    members.clear();
  }

  const Schedule& s_;
  const schedule::ActionCosts<Time>& costs_;
  const Transport transport_;
  const ActionClasses classes_;
  Times<Time>& times_;
  bool per_action_ = true, refused_ = false;
  std::vector<PriceOfClass> price_;  // [class]
  std::vector<Channel> channels_;
  std::vector<std::vector<Member>> meetings_;  // [group] those that wait
  std::vector<Time> lane_end_;
  std::vector<Cell> cells_;
  std::vector<size_t> next_;
  std::vector<int32_t> runnable_;
};

}  // namespace

template <typename Time>
bool WalkInProgramOrder(const Schedule& schedule, const schedule::ActionCosts<Time>& costs, Transport transport,
                        Times<Time>& times) {
  times.resize(schedule.num_ranks());
  for (int r = 0; r < schedule.num_ranks(); ++r) times[r].resize(schedule.ranks[r].size());
  return ProgramWalk<Time>(schedule, costs, transport, times).Run();
}

template bool WalkInProgramOrder(const Schedule&, const schedule::ActionCosts<Rational>&, Transport, Times<Rational>&);
template bool WalkInProgramOrder(const Schedule&, const schedule::ActionCosts<double>&, Transport, Times<double>&);

}  // namespace penstock::simulate
