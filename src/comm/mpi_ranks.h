// src/comm/mpi_ranks.h
//
// Ranks as processes that MPI connects: mpirun -n N, or srun where Slurm knows the MPI. One rank per process.
//
// Start:   MPI begins at the first RunMpiRank and ends with the process. Several worlds may follow each other.
// Signals: while a world runs, SIGTERM (what a launcher sends to the others when one process died) ends it with a
// message
//          instead of killing the process at once, unless the program handles it itself.
// Errors:  as RunThreadRanks (comm/thread_ranks.h), the same one on every process, but that the original exception
// object
//          is there only where it was thrown. A process that was killed is PeerLost within a second on the same
//          machine, one that was stopped or lost its network within `silence` everywhere; all by name and last action.
//          After a loss the process can end but not begin another world.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "comm/thread_ranks.h"

namespace penstock::comm {

// "Open MPI v4.1.4 ..."; empty in a build without MPI.
std::string MpiLibrary();

// What the launcher's variables say; nothing is started.
struct MpiLaunch {
  int rank = 0;
  int size = 1;
  std::string launcher;  // "mpirun of Open MPI"
};
// None when this process was not started by a launcher.
std::optional<MpiLaunch> LaunchedByMpi();

struct MpiWorldOptions {
  ThreadWorldOptions world;
  // How long a peer may be silent before it counts as lost.
  std::chrono::milliseconds silence{7'000};
};

// Runs body(communicator) as this process's rank, on a thread that is set up like a rank thread. Returns when the ranks
// of all processes have ended. UserError in a build without MPI, and when this program's MPI does not belong to the
// launcher (which would give N worlds of one rank).
void RunMpiRank(const MpiWorldOptions& options, const std::function<void(Communicator&)>& body);

}  // namespace penstock::comm
