#include "schedule/verify/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace penstock::schedule::verify {
namespace {

class Replayer {
 public:
  Replayer(const Schedule& schedule, Transport transport, const Numbering& numbering, const Meetings& meetings,
           const Hazards& hazards)
      : s_(schedule), transport_(transport), numbering_(numbering), meetings_(meetings), hazards_(hazards) {}

  TransportVerdict Run(const Edges& edges) {
    FindLanes();
    FindPredecessors(edges);
    FindGroups();
    if (Complete()) return {};
    return {.completes = false, .cycle = Explain()};
  }

 private:
  const Action& At(int32_t node) const { return s_.at(numbering_.ref(node)); }

  uint64_t LaneOf(const Action& a) const {
    switch (transport_) {
      case Transport::eager:
        return 0;
      case Transport::channelled:
        return (uint64_t{static_cast<uint8_t>(a.stream)} << 32) |
               (a.stream >= Stream::send_channel ? static_cast<uint32_t>(a.peer_or_group) : 0u);
      case Transport::blocking:
        return static_cast<uint64_t>(std::min(a.stream, Stream::send_channel));
    }
    return 0;
  }

  void FindLanes() {
    before_.assign(numbering_.size(), -1);
    std::unordered_map<uint64_t, int32_t> last;
    for (int r = 0; r < s_.num_ranks(); ++r) {
      last.clear();
      for (int i = 0; i < static_cast<int>(s_.ranks[r].size()); ++i) {
        const int32_t node = numbering_.of({r, i});
        const auto [it, is_new] = last.try_emplace(LaneOf(s_.ranks[r][i]), node);
        if (!is_new) {
          before_[node] = it->second;
          it->second = node;
        }
      }
    }
  }

  // Explicit edges, and in an eager replay the send of every receive, as lists per node.
  void FindPredecessors(const Edges& edges) {
    first_.assign(numbering_.size() + 1, 0);
    const auto receives = [&](int32_t n) {
      return transport_ == Transport::eager && At(n).key.kind == Kind::recv && meetings_.partner[n] >= 0;
    };
    for (const auto& [from, to] : edges) ++first_[to + 1];
    for (int32_t n = 0; n < numbering_.size(); ++n) first_[n + 1] += first_[n] + (receives(n) ? 1 : 0);
    needs_.resize(first_.back());
    std::vector<int32_t> at(first_.begin(), first_.end() - 1);
    for (const auto& [from, to] : edges) needs_[at[to]++] = from;
    for (int32_t n = 0; n < numbering_.size(); ++n)
      if (receives(n)) needs_[at[n]++] = meetings_.partner[n];
  }

  // Actions that end together share a representative.
  void FindGroups() {
    group_.resize(numbering_.size());
    never_.assign(numbering_.size(), false);
    for (int32_t n = 0; n < numbering_.size(); ++n) {
      group_[n] = n;
      const Kind kind = At(n).key.kind;
      if (kind == Kind::collective) {
        const auto& meeting = meetings_.collectives[meetings_.collective_of[n]];
        group_[n] = meeting.nodes[0];
        if (meeting.missing_rank >= 0) never_[group_[n]] = true;
      } else if (kind == Kind::recv) {
        if (meetings_.partner[n] < 0) {
          never_[n] = true;
        } else if (transport_ != Transport::eager) {
          group_[n] = meetings_.partner[n];
        }
      } else if (kind == Kind::send && meetings_.partner[n] < 0 && transport_ != Transport::eager) {
        never_[n] = true;
      }
    }
  }

  template <typename Visit>
  void ForEachPredecessor(int32_t node, const Visit& visit) const {
    if (before_[node] >= 0) visit(before_[node]);
    for (int32_t k = first_[node]; k < first_[node + 1]; ++k) visit(needs_[k]);
    if (transport_ == Transport::eager) return;  // the list is in order, and with it its hazards
    for (int64_t k = hazards_.first[node]; k < hazards_.first[node + 1]; ++k) visit(hazards_.nodes[k]);
  }

  // Kahn's algorithm over the groups. True when every group ends.
  bool Complete() {
    const int32_t n = numbering_.size();
    std::vector<int32_t> waits(n, 0);
    std::vector<int64_t> first(n + 1, 0);
    for (int32_t node = 0; node < n; ++node)
      ForEachPredecessor(node, [&](int32_t before) { ++first[group_[before] + 1]; });
    for (int32_t g = 0; g < n; ++g) first[g + 1] += first[g];
    std::vector<int32_t> successors(first.back());
    std::vector<int64_t> at(first.begin(), first.end() - 1);
    for (int32_t node = 0; node < n; ++node)
      ForEachPredecessor(node, [&](int32_t before) {
        successors[at[group_[before]]++] = group_[node];
        ++waits[group_[node]];
      });
    std::vector<int32_t> ready;
    int32_t groups = 0, ended = 0;
    ended_.assign(n, false);
    for (int32_t g = 0; g < n; ++g) {
      if (group_[g] != g) continue;
      ++groups;
      if (waits[g] == 0 && !never_[g]) ready.push_back(g);
    }
    while (!ready.empty()) {
      const int32_t g = ready.back();
      ready.pop_back();
      ended_[g] = true;
      ++ended;
      for (int64_t k = first[g]; k < first[g + 1]; ++k)
        if (--waits[successors[k]] == 0 && !never_[successors[k]]) ready.push_back(successors[k]);
    }
    return ended == groups;
  }

  bool Ended(int32_t node) const { return ended_[group_[node]]; }

  // What an action that did not end waits for.
  struct Wait {
    enum Why { lane, need, partner, nothing } why = nothing;
    int32_t node = -1;
  };
  Wait WaitOf(int32_t node) const {
    if (before_[node] >= 0 && !Ended(before_[node])) return {Wait::lane, before_[node]};
    for (int32_t k = first_[node]; k < first_[node + 1]; ++k) {
      if (Ended(needs_[k])) continue;
      const bool message = meetings_.partner[node] == needs_[k];
      return {message ? Wait::partner : Wait::need, needs_[k]};
    }
    if (transport_ != Transport::eager)
      for (int64_t k = hazards_.first[node]; k < hazards_.first[node + 1]; ++k)
        if (!Ended(hazards_.nodes[k])) return {Wait::need, hazards_.nodes[k]};
    // The action is there; somebody that it meets is not.
    if (meetings_.collective_of[node] >= 0) {
      for (const int32_t other : meetings_.collectives[meetings_.collective_of[node]].nodes)
        if (other != node && WaitsForOwn(other)) return {Wait::partner, other};
    } else if (meetings_.partner[node] >= 0 && WaitsForOwn(meetings_.partner[node])) {
      return {Wait::partner, meetings_.partner[node]};
    }
    return {};
  }
  // Is something of the action's own rank, or an edge, still before it?
  bool WaitsForOwn(int32_t node) const {
    bool waits = false;
    ForEachPredecessor(node, [&](int32_t before) { waits = waits || !Ended(before); });
    return waits;
  }

  // A stop: an action at the head of its lane, and what it waits for.
  struct Stop {
    int32_t node;
    Wait wait;
  };

  std::string Explain() const {
    // Follow what is waited for until an action comes again: that is the cycle.
    int32_t node = 0;
    while (Ended(node)) ++node;
    std::unordered_map<int32_t, size_t> seen;
    std::vector<Stop> path;
    while (seen.try_emplace(node, path.size()).second) {
      const Wait wait = WaitOf(node);
      path.push_back({node, wait});
      if (wait.why == Wait::nothing) return Describe(Stops(path), /*cycle=*/false);
      node = wait.node;
    }
    path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(seen.at(node)));
    std::vector<Stop> stops = Stops(path);
    // Start at the lowest rank.
    const auto lowest =
        std::min_element(stops.begin(), stops.end(), [](const Stop& a, const Stop& b) { return a.node < b.node; });
    std::rotate(stops.begin(), lowest, stops.end());
    return Describe(stops, /*cycle=*/true);
  }

  static std::vector<Stop> Stops(const std::vector<Stop>& path) {
    std::vector<Stop> stops;
    for (const Stop& stop : path)
      if (stop.wait.why != Wait::lane) stops.push_back(stop);
    return stops;
  }

  std::string Describe(const std::vector<Stop>& stops, bool cycle) const {
    constexpr size_t kShown = 16;
    if (stops.empty()) return "the lists wait for each other";
    std::string text =
        fmt::format("rank {} waits at '{}'", numbering_.rank(stops[0].node), ToString(At(stops[0].node)));
    for (size_t i = 0; i < stops.size(); ++i) {
      if (i == kShown) return text + fmt::format(", and so on over {} more actions", stops.size() - i);
      const Stop& stop = stops[i];
      const bool last = i + 1 == stops.size();
      if (stop.wait.why == Wait::nothing) {
        text += NeverComes(stop.node);
        continue;
      }
      const Stop& next = last ? stops[0] : stops[i + 1];
      const int rank = numbering_.rank(stop.wait.node);
      if (stop.wait.why == Wait::partner) {
        text += fmt::format(" for rank {}", rank);
        if (!last) text += fmt::format(", which waits at '{}'", ToString(At(next.node)));
      } else {
        text += fmt::format(" for '{}'", ToString(At(stop.wait.node)));
        if (rank != numbering_.rank(stop.node)) text += fmt::format(" of rank {}", rank);
        if (next.node != stop.wait.node) {
          text += fmt::format(", which stands behind '{}'", ToString(At(next.node)));
          if (!last) text += ", which waits";
        } else if (!last) {
          text += ", which waits";
        }
      }
      if (last && !cycle) break;
    }
    return text;
  }

  std::string NeverComes(int32_t node) const {
    const Action& a = At(node);
    if (a.key.kind == Kind::send) return fmt::format(" for rank {}, which never receives it", a.peer_or_group);
    if (a.key.kind == Kind::recv) return fmt::format(" for rank {}, which never sends it", a.peer_or_group);
    if (a.key.kind == Kind::collective)
      return fmt::format(" for rank {}, which never joins it",
                         meetings_.collectives[meetings_.collective_of[node]].missing_rank);
    return {};
  }

  const Schedule& s_;
  const Transport transport_;
  const Numbering& numbering_;
  const Meetings& meetings_;
  const Hazards& hazards_;
  std::vector<int32_t> before_;         // [node] previous in its lane; -1: first
  std::vector<int32_t> first_, needs_;  // [node] explicit predecessors
  std::vector<int32_t> group_;          // [node] representative
  std::vector<bool> never_;             // [representative] a partner is missing
  std::vector<bool> ended_;             // [representative]
};

}  // namespace

Edges FindEdges(const Schedule& s, const Numbering& numbering, const VerifyOptions& options) {
  Edges edges;
  for (int32_t n = 0; n < numbering.size(); ++n) {
    const EdgeRange& range = s.at(numbering.ref(n)).extra_edges;
    for (uint32_t k = range.first; k < range.first + range.count; ++k) edges.emplace_back(numbering.of(s.edges[k]), n);
  }
  if (options.expect_messages) return edges;
  const int micro_batches = s.num_micro_batches();
  const auto cell = [&](int stage, int m) { return static_cast<size_t>(stage) * micro_batches + m; };
  std::vector<int32_t> forward(static_cast<size_t>(s.num_stages()) * micro_batches, -1), backward(forward);
  for (int32_t n = 0; n < numbering.size(); ++n) {
    const Key& key = s.at(numbering.ref(n)).key;
    if (key.kind == Kind::forward) forward[cell(key.unit.stage, key.micro_batch)] = n;
    if (key.kind == Kind::backward || key.kind == Kind::backward_input)
      backward[cell(key.unit.stage, key.micro_batch)] = n;
  }
  for (const StageEdge& edge : s.graph.edges()) {
    for (int m = 0; m < micro_batches; ++m) {
      const int32_t from = forward[cell(edge.from, m)], to = forward[cell(edge.to, m)];
      if (from >= 0 && to >= 0) edges.emplace_back(from, to);
      const int32_t from_back = backward[cell(edge.to, m)], to_back = backward[cell(edge.from, m)];
      if (from_back >= 0 && to_back >= 0) edges.emplace_back(from_back, to_back);
    }
  }
  return edges;
}

TransportVerdict Replay(const Schedule& schedule, Transport transport, const Numbering& numbering,
                        const Meetings& meetings, const Hazards& hazards, const Edges& edges) {
  return Replayer(schedule, transport, numbering, meetings, hazards).Run(edges);
}

}  // namespace penstock::schedule::verify
