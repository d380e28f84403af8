#include "comm/thread_ranks.h"

#include <fmt/format.h>

#include <memory>
#include <thread>
#include <vector>

#include "comm/common/rank_thread.h"
#include "comm/threads/thread_communicator.h"
#include "comm/threads/world.h"

namespace penstock::comm {
void RunThreadRanks(int n, const ThreadWorldOptions& options, const std::function<void(Communicator&)>& body) {
  PENSTOCK_CHECK(n >= 1, "a world of {} ranks", n);
  PENSTOCK_CHECK(options.intra_op_threads >= 1, "{} intra-op threads", options.intra_op_threads);
  const auto world = std::make_shared<World>(n, options);
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    try {
      threads.emplace_back([&world, &body, r] {
        try {
          SetUpRankThread(r, world->options().intra_op_threads, world->options().flush_denormals,
                          fmt::format("rank {}", r));
          ThreadCommunicator communicator(world, r);
          body(communicator);
        } catch (...) {
          world->Fail(r, std::current_exception());
        }
        world->Finish(r);
      });
    } catch (const std::system_error& e) {
      world->Fail(-1, std::make_exception_ptr(
                          WorldError(fmt::format("cannot start the thread of rank {} of {}: {}", r, n, e.what()))));
      for (int missing = r; missing < n; ++missing) world->Finish(missing);
      break;
    }
  }
  world->WaitForRanks();
  for (std::thread& thread : threads) thread.join();
  world->CheckNothingLeft();
  world->Clear();
  world->RethrowFirst();
}

}  // namespace penstock::comm
