// src/report/svg.h
//
// A timeline as a picture: a row per rank with a box per action of the compute stream (the number is the micro-batch;
// with several stages per rank later ones are shaded darker), a thin line below it for messages and collectives, a time
// axis, a legend of the kinds that occur, and the bubble. Waiting is not painted. The pointer over a box names it.
// Boxes too narrow to see are merged, so that a million events make a file that a browser can open.
#pragma once

#include <optional>
#include <string>

#include "schedule/timeline.h"

namespace penstock::report {

struct SvgOptions {
  double width = 1200;               // pixels, at most; short schedules are narrower
  bool seconds = true;               // false: the unit of time is that of the costs, and the axis has plain numbers
  std::optional<int32_t> step = {};  // only this step; else all
};

std::string DrawSvg(const schedule::Timeline& timeline, const SvgOptions& options = {});

}  // namespace penstock::report
