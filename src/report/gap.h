// src/report/gap.h
//
// Where a prediction and a measurement of the same schedule part. Seconds per step throughout.
//
// Of several measured steps the first is left out (it warms caches and pools); times of actions are medians over the
// rest. "The step" is one that was measured: the one whose length is the median, so that the reasons add up.
//
// The reasons come from the critical path of the measured step (report/critical_path.h): every piece of it is compared
// with what was predicted for the same action or message. With d = measured - predicted of a piece,
//   measured step - predicted step = sum of d over the path + other_path
//   other_path = predicted length of that path - predicted step <= 0: in the prediction another path was the longest,
//                so that much of what became slower costs nothing (or what became faster gains nothing)
// The identity is exact; what the pieces of the host took has no prediction and is a reason of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/breakdown.h"
#include "schedule/stage_graph.h"
#include "schedule/timeline.h"

namespace penstock::report {

struct ClassGap {
  std::string name;   // "forward", "collective:reduce"
  int64_t count = 0;  // measured actions of one step
  // Work, all ranks: of compute the time without waiting; of receives from the end of the producing compute until the
  // message was there; of collectives from the last to join until they were over (as long as somebody waited).
  double predicted = 0, measured = 0;
  double difference() const { return measured - predicted; }
};

struct RankGap {
  // busy; wait: for another rank, a message, a collective or a copy; other: warm-up, drain, the host
  // (report/bubbles.h).
  RankTimes predicted, measured;
  int32_t waited_for = -1;  // the rank for which it waited longer than predicted, most of all; -1: none
  double waited_longer = 0;
};

struct LinkGap {
  int32_t from = 0, to = 0;
  int64_t messages = 0;  // of one step
  int64_t bytes = 0;
  // Seconds from the end of the producing compute until the message was there, summed over the messages for which both
  // are known: the receiver waited in both timelines. Messages that lay there already say nothing.
  int64_t compared = 0;
  double predicted = 0, measured = 0;
};

struct GapReason {
  std::string text;    // "forward of stage 1 on rank 1 took 12 % longer (+34 ms)"
  double seconds = 0;  // adds to (or, negative, takes from) the step
};

struct Gap {
  double predicted_step = 0, measured_step = 0;
  int64_t measured_steps = 0;     // that the medians are of
  int32_t step = 0;               // the one whose path is explained
  std::vector<ClassGap> classes;  // by |difference|, largest first
  std::vector<RankGap> ranks;
  std::vector<LinkGap> links;
  std::vector<GapReason> reasons;  // by |seconds|, largest first
  double other_path = 0;           // see above
  int64_t unmatched = 0;           // measured actions without a predicted one: another schedule?

  double difference() const { return measured_step - predicted_step; }
  // (predicted - measured) / measured; 0 when nothing was measured.
  double relative_error() const;
  std::string ToText() const;  // at most 16 lines
  // The part of it that says why, at most 9 lines; "" when nothing differs.
  std::string WhyText() const;
  std::string ToJson() const;  // one object
};

// Either may be empty: then the gap is, too.
Gap CompareTimelines(const schedule::Timeline& predicted, const schedule::Timeline& measured,
                     const schedule::StageGraph& graph);

// The step of `timeline` that stands for it (see above; `measured`: the first of several is left out), alone, with its
// start at 0, the memory events inside it, and what was alive before it at 0.
schedule::Timeline TypicalStepOf(const schedule::Timeline& timeline, bool measured);

}  // namespace penstock::report
