#include "comm/remote/remote_rank.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

#include "comm/common/rank_thread.h"
#include "comm/remote/engine.h"
#include "comm/remote/remote_communicator.h"

namespace penstock::comm {
namespace {

void RunBody(const std::shared_ptr<Shared>& shared, const std::function<void(Communicator&)>& body) {
  const RemoteOptions& options = shared->options();
  std::string leftover;
  try {
    SetUpRankThread(shared->rank(), options.world.intra_op_threads, options.world.flush_denormals,
                    fmt::format("rank {}", shared->rank()));
    RemoteCommunicator communicator(shared);
    body(communicator);
    leftover = communicator.Leftover();
  } catch (...) {
    shared->Fail(shared->rank(), std::current_exception());
  }
  shared->SetPeerFinished(shared->rank());
  shared->Give(BodyEndedCommand{std::move(leftover)});
}

// A body that does not come back after a failure cannot be stopped: somebody is told, and the process ends.
void WaitForBody(const Shared& shared, std::future<void>& body) {
  const RemoteOptions& options = shared.options();
  const auto back = [&](std::chrono::milliseconds longest) {
    return body.wait_for(longest) == std::future_status::ready;
  };
  while (!shared.failed()) {
    if (back(std::chrono::milliseconds(50))) return;
  }
  if (back(options.world.grace)) return;
  const FailureRecord failure = shared.failure().Record();
  const std::string report =
      fmt::format("rank {} failed: {}\nnot back after {:.1f} s: {}", failure.rank, failure.text,
                  static_cast<double>(options.world.grace.count()) * 1e-3, shared.DescribeRank(shared.rank()));
  if (!options.world.on_stuck) {
    std::fprintf(stderr, "%s\n", report.c_str());
    std::_Exit(1);
  }
  options.world.on_stuck(report);
  body.wait();
}

}  // namespace

bool RunRemoteRank(Transport& transport, const RemoteOptions& options, const std::function<void(Communicator&)>& body,
                   FirstFailure& failure) {
  PENSTOCK_CHECK(options.world.intra_op_threads >= 1, "{} intra-op threads", options.world.intra_op_threads);
  const int rank = transport.rank();
  const auto shared = std::make_shared<Shared>(rank, transport.size(), options, failure);
  Engine engine(shared, transport);
  bool together = false;
  std::thread progress([&] {
    // Additions are done here: with the same treatment of denormals as in the rank's thread.
    SetUpRankThread(rank, 1, options.world.flush_denormals, fmt::format("progress {}", rank));
    prctl(PR_SET_TIMERSLACK, 1'000UL);  // ns; else a sleep of 20 us takes 70 and more
    together = engine.Run();
  });
  std::packaged_task<void()> task([&] { RunBody(shared, body); });
  std::future<void> ended = task.get_future();
  std::thread rank_thread(std::move(task));
  WaitForBody(*shared, ended);
  rank_thread.join();
  progress.join();
  return together;
}

}  // namespace penstock::comm
