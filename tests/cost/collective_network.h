// tests/cost/collective_network.h
//
// Ranks that exchange elements in rounds, counting what they send: the collectives executed as their papers describe
// them, to hold the formulas of cost/collectives.h against. One element is one byte.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace penstock::cost {

class Network {
 public:
  using Elements = std::vector<int64_t>;

  Network(int64_t ranks, int64_t elements) : data(ranks, Elements(elements, 0)), messages_(ranks), sent_(ranks) {}

  // Element `to[i]` of `receiver` gets element `from[i]` of `sender` as it was when the round began.
  struct Message {
    int64_t sender, receiver;
    std::vector<int64_t> from, to;
    bool add;
  };

  int64_t ranks() const { return static_cast<int64_t>(data.size()); }

  // Elements [lo, hi) at the same place.
  void Range(int64_t sender, int64_t receiver, int64_t lo, int64_t hi, bool add) {
    Message m{sender, receiver, {}, {}, add};
    for (int64_t e = lo; e < hi; ++e) m.from.push_back(e);
    m.to = m.from;
    Post(std::move(m));
  }
  void Post(Message m) {
    if (!m.from.empty()) round_.push_back(std::move(m));
  }
  // Delivers what was posted; `group_of` of a rank decides whether the round is one between groups.
  void EndRound(int64_t inside = 0) {
    if (round_.empty()) return;
    std::vector<Elements> payloads;
    std::vector<int64_t> out(ranks()), in(ranks());
    bool between = false;
    for (const Message& m : round_) {
      Elements payload;
      for (const int64_t e : m.from) payload.push_back(data[m.sender][e]);
      payloads.push_back(std::move(payload));
      const auto bytes = static_cast<int64_t>(m.from.size());
      ++messages_[m.sender];
      sent_[m.sender] += bytes;
      out[m.sender] += bytes;
      in[m.receiver] += bytes;
      between |= inside > 0 && m.sender / inside != m.receiver / inside;
    }
    for (size_t i = 0; i < round_.size(); ++i)
      for (size_t k = 0; k < round_[i].to.size(); ++k) {
        int64_t& cell = data[round_[i].receiver][round_[i].to[k]];
        cell = round_[i].add ? cell + payloads[i][k] : payloads[i][k];
      }
    round_.clear();
    const int64_t most = std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
    ++steps;
    serial += most;
    if (between) {
      ++between_steps;
      between_bytes += most;
    }
  }

  int64_t most_messages() const { return *std::max_element(messages_.begin(), messages_.end()); }
  int64_t most_bytes() const { return *std::max_element(sent_.begin(), sent_.end()); }
  int64_t total_messages() const { return Sum(messages_); }
  int64_t total_bytes() const { return Sum(sent_); }

  std::vector<Elements> data;  // [rank][element]
  int64_t steps = 0, serial = 0, between_steps = 0, between_bytes = 0;

 private:
  static int64_t Sum(const std::vector<int64_t>& values) {
    int64_t sum = 0;
    for (const int64_t v : values) sum += v;
    return sum;
  }

  std::vector<Message> round_;
  std::vector<int64_t> messages_, sent_;
};

}  // namespace penstock::cost
