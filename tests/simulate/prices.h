// tests/simulate/prices.h
//
// Prices for tests: by kind, or arbitrary but fixed.
#pragma once

#include "base/rational.h"
#include "schedule/costs.h"

namespace penstock::simulate {

// Uniform compute; sends and collectives have a price of their own, messages a latency.
template <typename Time>
class PricesByKind final : public schedule::ActionCosts<Time> {
 public:
  PricesByKind(Time forward, Time backward, Time send, Time collective, Time latency)
      : forward_(forward), backward_(backward), send_(send), collective_(collective), latency_(latency) {}
  Time Duration(const schedule::Schedule&, int, const schedule::Action& action) const override {
    switch (action.key.kind) {
      case schedule::Kind::forward:
      case schedule::Kind::recompute:
        return forward_;
      case schedule::Kind::backward:
        return backward_;
      case schedule::Kind::backward_input:
      case schedule::Kind::backward_weight:
        return backward_ / Time(2);
      case schedule::Kind::send:
        return send_;
      case schedule::Kind::collective:
        return collective_;
      default:
        return 0;
    }
  }
  Time Latency(const schedule::Schedule&, int, int, const schedule::Action&) const override { return latency_; }

 private:
  Time forward_, backward_, send_, collective_, latency_;
};

// A pseudo-random price of every action but receives, and of every latency.
class ArbitraryPrices final : public schedule::ActionCosts<double> {
 public:
  ArbitraryPrices(uint64_t seed, bool by_micro_batch) : seed_(seed), by_micro_batch_(by_micro_batch) {}
  double Duration(const schedule::Schedule&, int rank, const schedule::Action& action) const override {
    return action.key.kind == schedule::Kind::recv ? 0 : Draw(action.key, rank, 1);
  }
  double Latency(const schedule::Schedule&, int from, int to, const schedule::Action& send) const override {
    return 0.25 * Draw(send.key, from, to + 2);
  }
  bool depends_on_micro_batch() const override { return by_micro_batch_; }

 private:
  double Draw(schedule::Key key, int rank, int salt) const {
    if (!by_micro_batch_) key.micro_batch = -1;
    uint64_t h = seed_ + std::hash<schedule::Key>()(key) * 31 + static_cast<uint64_t>(rank) * 1000003u +
                 static_cast<uint64_t>(salt) * 7919u;
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ull;
    h ^= h >> 33;
    return static_cast<double>(h >> 48) * 0x1p-16;  // few bits: sums of them are exact
  }
  uint64_t seed_;
  bool by_micro_batch_;
};

}  // namespace penstock::simulate
