// src/schedule/verify.h
//
// Replays a schedule without costs and says in words what is wrong with it.
//   deadlock       under eager, channelled and blocking transport: three verdicts, each with the cycle
//   messages       unmatched, reordered or to the wrong rank; collectives of a group in different orders on two ranks
//   coverage       each (use, micro-batch) once, both halves; gradient reduced or updated before its coverage is
//                  complete; uses of a shared unit summed before each is reduced; update before the check it needs
//   lifetimes      use before allocation, use after free, double free, allocation of a live buffer, leak at step end
//   route          an action on a rank that the route does not name
// Complexity: linear in actions and effects.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::schedule {

enum class FaultCode : uint8_t {
  malformed,        // indices out of range, empty schedule
  route,            // compute on a rank the route does not name
  missing_compute,  // a (stage, micro-batch) without forward, without backward, or with one half only
  duplicate_compute,
  unmatched_message,   // a send without receive or the reverse
  reordered_messages,  // k-th send and k-th receive of a channel differ
  collective_order,    // two ranks of a group issue its collectives in different orders
  use_before_allocation,
  use_after_free,
  double_free,
  double_allocation,
  leak,
  reduced_too_early,  // gradient reduced before its coverage is complete
  updated_too_early,  // update before reduction, before all uses are summed, or before the check that guards it
  missing_update,
  deadlock,
};
inline constexpr int kFaultCodeCount = 16;
std::string_view Name(FaultCode code);

struct Fault {
  FaultCode code = FaultCode::malformed;
  ActionRef where{-1, -1};  // -1: no single action
  std::string
      message;  // one sentence or more: what, where, and for deadlocks the cycle ("rank 0 waits at ... for ...")
};

struct TransportVerdict {
  bool completes = true;
  std::string cycle;  // when it does not
};

struct VerifyOptions {
  // Without them a compute-only schedule (before the communication, reduce and update passes) can be verified.
  bool expect_messages = true;
  bool expect_updates = true;
  // Off: the lists are a part of a step. Route, messages, order of collectives and deadlocks are judged; coverage,
  // lifetimes and the way from gradients to updates are not.
  bool expect_coverage = true;
  size_t max_faults = 20;
};

struct RankPeak {
  int64_t bytes = 0;  // symbolic sizes by their upper bounds; 0 when the schedule has no sizes
  std::vector<int64_t> buffers_by_class = std::vector<int64_t>(kBufferClassCount, 0);  // peak count of live buffers
};

struct VerifyReport {
  std::vector<Fault> faults;    // deadlocks appear here only for transports that the contract promises
  int64_t faults_left_out = 0;  // found beyond VerifyOptions::max_faults
  std::array<TransportVerdict, kTransportCount> transports;
  std::vector<RankPeak> peaks;  // [rank]
  int64_t actions = 0;
  bool ok() const { return faults.empty(); }
  // Multi-line text for people: verdict, faults, the three transports.
  std::string ToString() const;
};

VerifyReport Verify(const Schedule& schedule, const VerifyOptions& options = {});

}  // namespace penstock::schedule
