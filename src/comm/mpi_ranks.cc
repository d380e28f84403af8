#include "comm/mpi_ranks.h"

#include <cstdlib>

#include "base/error.h"

namespace penstock::comm {
namespace {

int Number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::atoi(text);
}

}  // namespace

std::optional<MpiLaunch> LaunchedByMpi() {
  struct Known {
    const char* rank;
    const char* size;
    const char* launcher;
  };
  // The last one is also there under srun with PMI2 or PMIx, whose own variables do not always name the size.
  static constexpr Known kKnown[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI"},
                                     {"PMI_RANK", "PMI_SIZE", "mpirun of MPICH"},
                                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun"}};
  for (const Known& known : kKnown) {
    const MpiLaunch launch{Number(known.rank, -1), Number(known.size, -1), known.launcher};
    if (launch.rank >= 0 && launch.size >= 1) return launch;
  }
  return std::nullopt;
}

#if !PENSTOCK_WITH_MPI
std::string MpiLibrary() { return ""; }

void RunMpiRank(const MpiWorldOptions&, const std::function<void(Communicator&)>&) {
  throw UserError(
      "this build of penstock has no MPI. Install an MPI (Debian: libopenmpi-dev openmpi-bin; `make setup` does it), "
      "then configure with -DPENSTOCK_WITH_MPI=ON and build again");
}
#endif

}  // namespace penstock::comm
