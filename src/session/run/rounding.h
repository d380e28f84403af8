// src/session/run/rounding.h
//
// How far two runs may be apart when their gradients agree to rounding. A gradient element is taken to be exact to
// `bound` times the largest gradient of the run, whatever its own size: where contributions cancel, nothing but
// rounding is left (the key bias of attention, whose gradient is zero in exact arithmetic), and after the first update
// the gradients of all tensors feel what rounding did to the parameters of the others. What that does to a parameter is
// the optimizer's to say, update by update (optim::Optimizer::sensitivity); states are held against the largest
// magnitude among all tensors of their kind.
#pragma once

#include <map>
#include <string>

#include "checkpoint/compare.h"
#include "session/run/recorded_run.h"

namespace penstock::session {

class RoundingAllowance {
 public:
  // `bound`: relative error of a gradient, by the precision of the run. `bounds`: of the comparison itself, to which
  // this adds. Everything must outlive it.
  RoundingAllowance(const RecordedRun& a, const RecordedRun& b, double bound, const checkpoint::RoundingBounds& bounds);

  checkpoint::RoundingBounds ForParameter(const std::string& name) const;
  checkpoint::RoundingBounds ForState(const std::string& name) const;  // "<optimizer>.<state>/<parameter>"

 private:
  const RecordedRun& a_;
  const RecordedRun& b_;
  const double bound_;
  const checkpoint::RoundingBounds bounds_;
  double gradient_error_ = 0;
  double largest_movement_ = 0;                  // of a parameter element, over all updates
  std::map<std::string, double> largest_state_;  // by "<optimizer>.<state>"
};

}  // namespace penstock::session
