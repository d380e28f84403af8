// src/schedule/costs.h
//
// One price per action: builder hints, passes, planner and simulator call the same function. Filled by cost; the
// exact uniform prices of the closed forms are here.
#pragma once

#include "schedule/builder.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

template <typename Time>
class ActionCosts {
 public:
  virtual ~ActionCosts() = default;
  // Time the action keeps its stream busy.
  virtual Time Duration(const Schedule& schedule, int rank, const Action& action) const = 0;
  // Time from the end of a send until its receive can end, for messages between two different ranks.
  virtual Time Latency(const Schedule& schedule, int from, int to, const Action& send) const = 0;
  // Does the price rest on values outside the range in which anything was measured or stated? Then it is marked in
  // every output (Provenance::extrapolated).
  virtual bool Extrapolated(const Schedule& /*schedule*/, int /*rank*/, const Action& /*action*/) const {
    return false;
  }
  // Can prices of actions differ that are equal in all but their micro-batch? If not they are asked for once.
  virtual bool depends_on_micro_batch() const { return true; }
};

class UniformActionCosts final : public ActionCosts<Rational> {
 public:
  explicit UniformActionCosts(UniformCosts costs) : costs_(costs) {}
  Rational Duration(const Schedule& schedule, int rank, const Action& action) const override;
  Rational Latency(const Schedule& schedule, int from, int to, const Action& send) const override;
  bool depends_on_micro_batch() const override { return false; }

 private:
  UniformCosts costs_;
};

// The same in seconds, for what runs in real time.
class UniformSeconds final : public ActionCosts<double> {
 public:
  explicit UniformSeconds(const UniformCosts& costs) : costs_(costs) {}
  double Duration(const Schedule& schedule, int rank, const Action& action) const override {
    return costs_.Duration(schedule, rank, action).ToDouble();
  }
  double Latency(const Schedule& schedule, int from, int to, const Action& send) const override {
    return costs_.Latency(schedule, from, to, send).ToDouble();
  }
  bool depends_on_micro_batch() const override { return false; }

 private:
  UniformActionCosts costs_;
};

}  // namespace penstock::schedule
