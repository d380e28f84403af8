// src/comm/mpi/peer_processes.h
//
// The processes of the other ranks, as far as they can be seen: on this machine, in this name space of process ids.
// A process that was killed is known to be gone at once, long before its silence is noticed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::comm {

class PeerProcesses {
 public:
  // All processes at once.
  explicit PeerProcesses(MPI_Comm communicator);
  // Why the process of `rank` is known to be gone; empty when it is there or cannot be seen.
  std::string WhyGone(int rank) const;

 private:
  struct Process {
    uint64_t machine = 0;  // and name space
    uint64_t started = 0;  // in ticks since the machine started, so that a number that is used again is no mistake
    int64_t pid = 0;
  };
  std::vector<Process> processes_;
  uint64_t machine_ = 0;
};

}  // namespace penstock::comm
