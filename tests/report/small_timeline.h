// tests/report/small_timeline.h
//
// 1F1B replayed at unit times, the timeline of most tests here.
#pragma once

#include "schedule/builder.h"
#include "schedule/costs.h"
#include "schedule/text.h"
#include "simulate/list_engine.h"

namespace penstock::report {

// Compute only: forward 1, backward 2, `hop` between ranks.
inline schedule::Schedule PipelineOf(const std::string& builder, int ranks, int chunks, int micro_batches) {
  const auto order =
      schedule::BuildCompute(Registry<schedule::Builder>::Find(builder), {ranks, chunks, micro_batches, ""});
  std::string text = "penstock schedule 1\nname " + builder + "\n";
  static constexpr std::string_view kLetters = "FBIW";
  for (size_t r = 0; r < order.positions.size(); ++r) {
    text += "rank " + std::to_string(r) + ":";
    for (const auto& op : order.positions[r].ops())
      text += " " + std::to_string(op.stage) + kLetters[static_cast<size_t>(op.kind)] + std::to_string(op.micro_batch);
    text += "\n";
  }
  return schedule::ParseSchedule(text);
}

inline schedule::Timeline Replayed(const schedule::Schedule& s, Rational hop = 0, int chunks = 1) {
  auto costs = schedule::UniformCosts::PerRank(1, 1, 1, chunks);
  costs.hop = hop;
  const auto replay = simulate::ReplayInOrder<Rational>(s, schedule::UniformActionCosts(costs));
  return simulate::ToTimeline(s, replay, s.name);
}

}  // namespace penstock::report
