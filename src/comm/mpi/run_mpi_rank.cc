#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "comm/mpi/mpi_session.h"
#include "comm/mpi/mpi_transport.h"
#include "comm/mpi/peer_processes.h"
#include "comm/mpi_ranks.h"
#include "comm/remote/remote_rank.h"

namespace penstock::comm {
namespace {

using Clock = std::chrono::steady_clock;

// A launcher that sees one process die sends SIGTERM to the others: time to notice who died and to say so.
constexpr std::chrono::milliseconds kTimeForWords{500};

volatile std::sig_atomic_t terminated = 0;

// Takes SIGTERM for a scope, when nobody else has.
class TerminationWatch {
 public:
  TerminationWatch() {
    struct sigaction now {};
    sigaction(SIGTERM, nullptr, &now);
    taken_ = now.sa_handler == SIG_DFL;
    if (!taken_) return;
    struct sigaction ours {};
    ours.sa_handler = [](int) { terminated = 1; };
    ours.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &ours, &former_);
  }
  ~TerminationWatch() {
    if (taken_) sigaction(SIGTERM, &former_, nullptr);
  }
  TerminationWatch(const TerminationWatch&) = delete;
  TerminationWatch& operator=(const TerminationWatch&) = delete;

 private:
  bool taken_ = false;
  struct sigaction former_ {};
};

}  // namespace

void RunMpiRank(const MpiWorldOptions& options, const std::function<void(Communicator&)>& body) {
  BeginMpi();
  PENSTOCK_CHECK(!MpiGivenUp(), "a world after one whose process was lost");
  FirstFailure failure;
  {
    const TerminationWatch watch;
    MpiTransport transport;
    const PeerProcesses processes(transport.communicator());
    RemoteOptions remote{.world = options.world, .backend = "mpi", .silence = options.silence};
    remote.why_gone = [&](int peer) { return processes.WhyGone(peer); };
    remote.why_end = [since = Clock::time_point()]() mutable {
      if (terminated == 0) return "";
      if (since == Clock::time_point()) since = Clock::now();
      return Clock::now() - since < kTimeForWords ? "" : "ended by SIGTERM";
    };
    if (!RunRemoteRank(transport, remote, body, failure)) GiveUpMpi();
  }
  failure.Rethrow();
}

}  // namespace penstock::comm
