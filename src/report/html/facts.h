// src/report/html/facts.h
//
// What the sections of the page are about, computed once. Refers to the input, which must live as long.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/breakdown.h"
#include "report/bubbles.h"
#include "report/critical_path.h"
#include "report/gap.h"
#include "report/html.h"

namespace penstock::report::html {

// A timeline and its step that stands for all.
struct Side {
  std::string name;  // "predicted", "measured"
  const schedule::Timeline* timeline = nullptr;
  schedule::Timeline typical;  // the step alone, from 0
  double step_seconds = 0;
  Breakdown breakdown;  // of `typical`, as the next two
  Bubbles bubbles;
  std::vector<PathPiece> path;
};

// The highest memory of a rank, from the best source there is.
struct RankPeak {
  int64_t predicted = 0, measured = 0;  // 0: not known
  int64_t limit = 0;                    // 0: not known
  PeakMemory composition;               // of the measured one, else of the predicted one; bytes 0: not known
  int64_t bytes() const { return measured > 0 ? measured : predicted; }
};

struct Facts {
  explicit Facts(const HtmlInput& input);
  // What is spoken of when there is one number to give: measured before predicted; null without a timeline.
  const Side* main() const { return measured ? &*measured : predicted ? &*predicted : nullptr; }

  const HtmlInput& input;
  schedule::StageGraph graph;
  std::optional<Side> predicted, measured;
  std::optional<Gap> gap;       // with both
  std::vector<RankPeak> peaks;  // [rank]; empty when nothing is known
  int tightest = -1;            // rank nearest to its limit, else with the highest peak; -1: not known
  // Of the limit at the peak: of the tightest rank, or of all together where they share one memory. 0: not known.
  double memory_share() const;
  int64_t all_peaks() const;  // sum over the ranks
};

// Sections, each complete HTML or "" when there is nothing to say.
std::string Headline(const Facts& facts);
std::string AdviceSection(const Facts& facts);
std::string GlossarySection();
std::string BubbleSection(const Facts& facts);
std::string GapSection(const Facts& facts);
std::string LinkSection(const Facts& facts);
std::string MemorySection(const Facts& facts);
std::string CurveSection(const Facts& facts);
std::string SourceSection(const Facts& facts);
// The canvas, its legend, and the data for timeline.js.
std::string TimelineSection(const Facts& facts);

}  // namespace penstock::report::html
