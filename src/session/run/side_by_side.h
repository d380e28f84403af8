// src/session/run/side_by_side.h
//
// Do two rank threads run side by side on this machine? One forward and backward of two transformer blocks (hidden
// 256, 4 x 256 tokens), alone and on two ranks at once, interleaved.
#pragma once

#include <vector>

namespace penstock::session {

struct SideBySide {
  double alone = 0;            // median seconds of one pass on one rank
  double together = 0;         // median over both ranks, two at once
  std::vector<double> ratios;  // pair by pair
  double slowdown = 0;         // median of ratios - 1
};
SideBySide MeasureSideBySide(int pairs, int passes_per_sample);

}  // namespace penstock::session
