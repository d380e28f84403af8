// src/report/critical_path.h
//
// What a step's time consists of: from its last end back to its start, at every moment the one thing that the end had
// to wait for. The pieces tile the step: their seconds add up to its length.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/stage_graph.h"
#include "schedule/timeline.h"

namespace penstock::report {

enum class PathKind : uint8_t { work, message, collective, copy, host };
inline constexpr std::array<std::string_view, 5> kPathKindNames = {"work", "message", "collective", "copy", "host"};
constexpr std::string_view Name(PathKind k) { return kPathKindNames[static_cast<size_t>(k)]; }

struct PathPiece {
  PathKind kind = PathKind::work;
  int32_t rank = 0;   // that works; for messages the receiver
  int32_t peer = -1;  // messages: the sender; collectives: the last to join
  // work: the action; others: the receive, collective or copy (or, without messages, the producer); -1: a message or
  // collective that was over already, and asking for it took this long
  int32_t event = -1;
  int32_t before = -1;  // messages: the action that waited, -1 if none did
  double start = 0, end = 0;
  double seconds() const { return end - start; }
};

// By time. Of one step; empty when the timeline has no event of it.
std::vector<PathPiece> CriticalPath(const schedule::Timeline& timeline, int32_t step,
                                    const schedule::StageGraph& graph);

// Pieces of one class and rank together: "forward" on rank 1, "message" to rank 2, "host" on rank 0.
struct PathShare {
  std::string name;  // "forward", "collective:reduce", "message", "host"
  int32_t rank = 0;
  int64_t count = 0;
  double seconds = 0;
};
// Longest first.
std::vector<PathShare> Shares(const schedule::Timeline& timeline, const std::vector<PathPiece>& path);

}  // namespace penstock::report
