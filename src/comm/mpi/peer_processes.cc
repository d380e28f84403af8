#include "comm/mpi/peer_processes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "comm/mpi/mpi_session.h"

namespace penstock::comm {
namespace {

struct Seen {
  char state = 0;  // 0: no such process
  uint64_t started = 0;
};

// The third and the 22nd field of /proc/PID/stat; the second may hold anything but ends with the last ')'.
Seen Look(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text) || text.rfind(')') == std::string::npos) return {};
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  Seen seen;
  fields >> seen.state;
  std::string skipped;
  for (int i = 4; i < 22; ++i) fields >> skipped;
  fields >> seen.started;
  return seen;
}

uint64_t ThisMachine() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  struct stat name_space {};
  if (id.empty() || stat("/proc/self/ns/pid", &name_space) != 0) return 0;
  return std::hash<std::string>()(fmt::format("{} {}", id, name_space.st_ino));
}

}  // namespace

PeerProcesses::PeerProcesses(MPI_Comm communicator) : machine_(ThisMachine()) {
  int size = 0;
  CheckMpi(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
  processes_.resize(size);
  Process self{machine_, Look(getpid()).started, getpid()};
  CheckMpi(MPI_Allgather(&self, sizeof(self), MPI_BYTE, processes_.data(), sizeof(self), MPI_BYTE, communicator),
           "MPI_Allgather");
}

std::string PeerProcesses::WhyGone(int rank) const {
  const Process& process = processes_[rank];
  if (process.machine != machine_ || machine_ == 0 || process.started == 0) return "";
  const Seen seen = Look(process.pid);
  const bool there = seen.state != 0 && seen.state != 'Z' && seen.state != 'X' && seen.started == process.started;
  return there ? "" : fmt::format("its process {} has ended", process.pid);
}

}  // namespace penstock::comm
