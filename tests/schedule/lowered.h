// tests/schedule/lowered.h
//
// Small lowered schedules and the means to break them on purpose.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "schedule/builder.h"
#include "schedule/lower.h"
#include "schedule/operators.h"
#include "schedule/verify.h"

namespace penstock::schedule::testing {

inline LowerSpec Mesh(int data, int pipeline, int chunks, int micro_batches) {
  LowerSpec spec;
  spec.data = data;
  spec.pipeline = pipeline;
  spec.chunks = chunks;
  spec.micro_batches = micro_batches;
  return spec;
}

inline Schedule LowerNamed(const std::string& builder, const LowerSpec& spec) {
  return Lower(Registry<Builder>::Find(builder), spec);
}

// Index in the rank's list of the action that prints as `text` (schedule/action.h).
inline int IndexOf(const Schedule& schedule, int rank, const std::string& text) {
  const auto& list = schedule.ranks[rank];
  for (size_t i = 0; i < list.size(); ++i)
    if (ToString(list[i]) == text) return static_cast<int>(i);
  std::string all;
  for (const Action& action : list) all += "\n  " + ToString(action);
  ADD_FAILURE() << "rank " << rank << " has no '" << text << "' among" << all;
  return 0;
}

inline void Remove(Schedule& schedule, int rank, const std::string& text) {
  auto& list = schedule.ranks[rank];
  list.erase(list.begin() + IndexOf(schedule, rank, text));
}

// Takes the action out and puts it back right before `before`.
inline void MoveBefore(Schedule& schedule, int rank, const std::string& text, const std::string& before) {
  const Action action = schedule.ranks[rank][IndexOf(schedule, rank, text)];
  Remove(schedule, rank, text);
  auto& list = schedule.ranks[rank];
  list.insert(list.begin() + IndexOf(schedule, rank, before), action);
}

inline void Swap(Schedule& schedule, int rank, const std::string& a, const std::string& b) {
  auto& list = schedule.ranks[rank];
  std::swap(list[IndexOf(schedule, rank, a)], list[IndexOf(schedule, rank, b)]);
}

inline bool HasFault(const VerifyReport& report, FaultCode code, const std::string& words = "") {
  return std::any_of(report.faults.begin(), report.faults.end(), [&](const Fault& fault) {
    return fault.code == code && fault.message.find(words) != std::string::npos;
  });
}

#define EXPECT_FAULT(report, code, words) \
  EXPECT_TRUE(::penstock::schedule::testing::HasFault(report, code, words)) << (report).ToString()

}  // namespace penstock::schedule::testing
