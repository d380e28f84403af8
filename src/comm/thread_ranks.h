// src/comm/thread_ranks.h
//
// Ranks as threads of this process: the default back end.
//
// Every rank thread is set up before its body runs (docs/decisions.md, "ranks as threads"): its own intra-op thread
// count, backward on the calling thread, denormals as asked, name "rank N", ThisRank() = N. Grad mode is left as a new
// thread has it (on).
//
// Errors: the first exception of a rank wins. The world is over then: the other ranks' waits throw PeerLost, all
//         threads are joined, and the first one is rethrown: UserError, PeerLost, OrderMismatch, WorldError and
//         InternalError as themselves with the rank in the message; anything else as RankFailed. A rank that returns
//         while others still need it is PeerLost to them at once. A message that nobody received and a collective that
//         not all members posted are OrderMismatch at the end.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "comm/communicator.h"

namespace penstock::comm {

// A rank ended with an exception that is not one of Penstock's.
class RankFailed : public WorldError {
 public:
  using WorldError::WorldError;
};

struct ThreadWorldOptions {
  // The longest a Wait lasts before the peer counts as lost.
  std::chrono::milliseconds deadline{300'000};
  // After the world has failed: how long a rank may go on without coming back to its communicator (a thread cannot be
  // stopped from outside). Then `on_stuck` is called with a report, once; without one the report goes to stderr and
  // the process ends with exit code 1.
  std::chrono::milliseconds grace{60'000};
  std::function<void(const std::string& report)> on_stuck = {};
  // Threads of one libtorch operation in each rank; part of the numerics.
  int intra_op_threads = 1;
  bool flush_denormals = false;
};

// Runs body(communicator) on n rank threads and returns when all have ended.
void RunThreadRanks(int n, const ThreadWorldOptions& options, const std::function<void(Communicator&)>& body);

}  // namespace penstock::comm
