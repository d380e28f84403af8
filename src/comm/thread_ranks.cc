#include "comm/thread_ranks.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <fmt/format.h>
#include <pthread.h>

#include <memory>
#include <thread>
#include <vector>

#include "base/this_rank.h"
#include "comm/threads/thread_communicator.h"
#include "comm/threads/world.h"

namespace penstock::comm {
namespace {

// First thing in a rank thread: all of this is thread-local in libtorch and not inherited.
void SetUpThread(int rank, const ThreadWorldOptions& options) {
  pthread_setname_np(pthread_self(), fmt::format("rank {}", rank).c_str());
  SetThisRank(rank);
  at::set_num_threads(options.intra_op_threads);
  at::globalContext().setFlushDenormal(options.flush_denormals);
  // Backward of any graph stays on the calling thread, also when devices come that have engine threads of their own.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

}  // namespace

void RunThreadRanks(int n, const ThreadWorldOptions& options, const std::function<void(Communicator&)>& body) {
  PENSTOCK_CHECK(n >= 1, "a world of {} ranks", n);
  PENSTOCK_CHECK(options.intra_op_threads >= 1, "{} intra-op threads", options.intra_op_threads);
  const auto world = std::make_shared<World>(n, options);
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    try {
      threads.emplace_back([&world, &body, r] {
        try {
          SetUpThread(r, world->options());
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
