// src/report/advice.h
//
// What single changes could save of a step, from where its time went. Upper bounds, each by itself: what a change costs
// elsewhere (memory, smaller products, other waits) is the simulator's to say.
#pragma once

#include <string>
#include <vector>

#include "report/bubbles.h"
#include "report/critical_path.h"
#include "schedule/timeline.h"

namespace penstock::report {

struct Advice {
  std::string text;    // one sentence, what and how
  double seconds = 0;  // that it could save of the step at most
};

// `step`: one step alone, with its path and bubbles. `memory_share`: of the limit at the peak; 0: not known.
// Largest first; nothing below a hundredth of the step.
std::vector<Advice> AdviceFor(const schedule::Timeline& step, const std::vector<PathPiece>& path,
                              const Bubbles& bubbles, double memory_share);

}  // namespace penstock::report
