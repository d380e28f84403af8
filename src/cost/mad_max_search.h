// src/cost/mad_max_search.h
//
// Exhaustive search over strategies per class of layers, and what other hardware would bring: one field of the system
// scaled, searched again. A trace takes about a microsecond per operation; a search of P points over L layers some P L
// times eight.
// Threads: functions only. Errors: UserError when the space is larger than its limit.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cost/mad_max.h"

namespace penstock::cost {

struct MadMaxSpace {
  bool degree_splits = true;         // every divisor as the inner degree, not only the sizes of the levels
  int64_t max_tensor_degree = 1024;  // heads
  int64_t max_points = 200'000;
  Mapping fixed{};  // classes whose strategy is given
};

// Strategies of one or two entries that differ (no degree of 1 beside another entry), that suit the class.
std::vector<Strategy> StrategiesOf(const MadMaxLayer& layer, const MadMaxSystem& system, const MadMaxSpace& space);

struct MadMaxSearchResult {
  bool found = false;
  Mapping mapping;
  MadMaxEstimate estimate;
  int64_t evaluated = 0, feasible = 0;  // points
};

// Most samples per second among the points that fit; ties: the first in order.
MadMaxSearchResult SearchMadMax(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                                const MadMaxSpace& space = {});

enum class MadMaxResource : uint8_t {
  flops,
  memory_bandwidth,
  memory_capacity,
  inside_bandwidth,
  between_bandwidth,
  all
};
inline constexpr std::array<std::string_view, 6> kMadMaxResourceNames = {
    "FLOP/s", "memory bandwidth", "memory capacity", "bandwidth inside", "bandwidth between", "all of them"};
constexpr std::string_view Name(MadMaxResource r) { return kMadMaxResourceNames[static_cast<size_t>(r)]; }

// inside: the innermost level; between: all others.
MadMaxSystem Scaled(MadMaxSystem system, MadMaxResource resource, double factor);

struct MadMaxWhatIf {
  MadMaxResource resource = MadMaxResource::flops;
  MadMaxSearchResult best;
  double gain = 0;  // samples per second over those of the system as it is; 0: nothing fits
};
std::vector<MadMaxWhatIf> WhatIfMadMax(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                                       double factor, const MadMaxSpace& space = {});

std::string Explain(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                    const MadMaxSearchResult& result);
std::string Explain(const std::vector<MadMaxWhatIf>& rows, double factor);

}  // namespace penstock::cost
