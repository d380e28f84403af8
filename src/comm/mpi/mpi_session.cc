#include "comm/mpi/mpi_session.h"

#include <fmt/format.h>
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "base/error.h"
#include "comm/mpi_ranks.h"

namespace penstock::comm {
namespace {

std::atomic<bool> given_up{false};

// At the end of the process, when everything has been said: others end a job as soon as one of its processes is gone.
void EndMpi() {
  std::fflush(nullptr);
  if (!given_up.load()) MPI_Finalize();
}

void Begin() {
  int begun = 0;
  CheckMpi(MPI_Initialized(&begun), "MPI_Initialized");
  int provided = MPI_THREAD_SERIALIZED;
  if (begun == 0) {
    // Calls come from the main thread and, between its calls, from one progress thread: serialized, not more.
    CheckMpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    std::atexit(&EndMpi);
  } else {
    CheckMpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    throw UserError(
        "this MPI ({}) may be called from its main thread only; an MPI with MPI_THREAD_SERIALIZED is needed",
        MpiLibrary());
  }
  int size = 0;
  CheckMpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  const auto launch = LaunchedByMpi();
  if (launch && launch->size > 1 && size == 1) {
    throw UserError(
        "{} started {} processes, but this program uses another MPI ({}) and every process is alone in its world. "
        "Start it with the mpirun of its own MPI (Debian: mpirun.openmpi or mpirun.mpich), or build it with the other",
        launch->launcher, launch->size, MpiLibrary());
  }
}

}  // namespace

std::string MpiLibrary() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "an unknown MPI";
  const std::string whole(text, length);
  return whole.substr(0, whole.find_first_of(",\n"));
}

void BeginMpi() {
  static std::once_flag once;
  std::call_once(once, &Begin);
}

void GiveUpMpi() { given_up = true; }
bool MpiGivenUp() { return given_up; }

void CheckMpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  throw WorldError(fmt::format("{}: {}", call, std::string(text, length)));
}

}  // namespace penstock::comm
