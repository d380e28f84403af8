// src/report/html.h
//
// report.html: what a prediction or a run says, in one file that needs nothing else: no network, no other file. Opens
// in any current browser; prints; the essentials are text, so that they are read without scripts and by screen readers.
//
//   answers in words (step time; what it consists of; who was idle longest and for what; what limits memory; where
//   prediction and measurement part; what would help), timelines to zoom and drag, bubbles by cause, the gap, links,
//   memory over time, curves of the run, and where every number comes from.
//
// Works with a prediction alone (simulate), a measurement alone, or both. Everything is optional but the title. Of a
// timeline with several steps one stands for all in the tables (report/gap.h); all are drawn, up to kMaxHtmlEvents
// actions of both timelines together: what is left out is said on the page.
// Pure: reads its input, throws nothing but what allocation throws. Use it from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/metrics.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace penstock::report {

inline constexpr int64_t kMaxHtmlEvents = 200000;

struct HtmlInput {
  std::string title;
  // Not owned; null: not there. The schedule says which stage feeds which (else stages are a chain) and its name.
  const schedule::Timeline* predicted = nullptr;
  const schedule::Timeline* measured = nullptr;
  const schedule::Schedule* schedule = nullptr;
  std::vector<int64_t> memory_limits;         // [rank] bytes; 0 or missing: not known
  bool shared_cores = false;                  // more ranks than cores: an idle rank's core works for the others
  bool shared_memory = false;                 // the limits are one memory that all ranks share
  std::vector<int64_t> predicted_peak_bytes;  // [rank]; used where the prediction has no memory events
  double predicted_step_seconds = 0;          // with what a step takes beside its actions; 0: not known
  std::vector<StepMetrics> metrics;
  std::vector<std::pair<std::string, std::string>> facts;  // "cluster" -> "2 nodes, 8 GPUs each", in order
  std::vector<std::string> warnings;                       // sentences
  bool uncalibrated = false;  // the prediction's prices were not measured on the machine they are for
};

std::string HtmlReport(const HtmlInput& input);

}  // namespace penstock::report
