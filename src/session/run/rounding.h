// src/session/run/rounding.h
//
// How far two runs may be apart when their gradients agree to rounding. A sum of gradients is exact to `bound` times
// the largest gradient of the run, whatever the size of the element: where contributions cancel, nothing but rounding
// is left (the key bias of attention, whose gradient is zero in exact arithmetic). What that does to a parameter is the
// optimizer's to say, update by update (optim::Optimizer::sensitivity); states are held against the largest magnitude
// among all tensors of their kind.
#pragma once

#include <map>
#include <string>

#include "checkpoint/compare.h"
#include "session/run/recorded_run.h"

namespace penstock::session {

class RoundingAllowance {
 public:
  // `bound`: relative error of a gradient, by the precision of the run. Everything must outlive it.
  RoundingAllowance(const model::ModelSpec& spec, const RecordedRun& a, const RecordedRun& b, double bound);

  checkpoint::RoundingBounds ForParameter(const std::string& name) const;
  checkpoint::RoundingBounds ForState(const std::string& name) const;  // "<optimizer>.<state>/<parameter>"

 private:
  const RecordedRun& a_;
  const RecordedRun& b_;
  double bound_;
  double gradient_error_ = 0;
  double largest_movement_ = 0;                // of a parameter element, over all updates
  std::map<std::string, int> index_;           // of a parameter
  std::map<std::string, double> state_scale_;  // "<optimizer>.<state>" -> largest magnitude
};

}  // namespace penstock::session
