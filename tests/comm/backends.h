// tests/comm/backends.h
//
// The back ends that the tests of the Communicator interface run on. A back end joins by one line in Backends().
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/link_model.h"
#include "base/time_source.h"
#include "comm/communicator.h"
#include "comm/emulated_links.h"
#include "comm/remote/remote_rank.h"
#include "comm/thread_ranks.h"
#include "local_transport.h"

namespace penstock::comm {

using Body = std::function<void(Communicator&)>;

struct Backend {
  std::string name;
  // Runs `body` on n ranks; throws the first exception.
  std::function<void(int n, std::chrono::milliseconds deadline, const Body& body)> run;
};

// Links without cost.
class FreeLinks final : public LinkModel {
 public:
  LinkSeconds Message(int, int, int64_t) const override { return {}; }
  double Collective(const std::vector<int>&, std::string_view, int64_t) const override { return 0; }
};

// Ranks that meet only over frames and transfers, each with a progress thread, here in one process. All of them must
// see the same failure.
inline void RunLocalRemoteRanks(const std::shared_ptr<LocalHub>& hub, const RemoteOptions& options, const Body& body) {
  std::vector<FirstFailure> failures(hub->size);
  std::vector<std::thread> threads;
  for (int r = 0; r < hub->size; ++r) {
    threads.emplace_back([&, r] {
      LocalTransport transport(hub, r);
      RunRemoteRank(transport, options, body, failures[r]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto record = [&](int r) { return failures[r].failed() ? failures[r].Record() : FailureRecord(); };
  int origin = 0;
  for (int r = 0; r < hub->size; ++r) {
    if (hub->dead[r]) continue;
    if (hub->dead[origin]) origin = r;
    EXPECT_EQ(record(r).text, record(origin).text) << "ranks " << origin << " and " << r;
  }
  // The rank's own exception says most.
  const int failed = record(origin).rank;
  if (failed >= 0 && !hub->dead[failed]) origin = failed;
  failures[origin].Rethrow();
}

inline std::vector<Backend> Backends() {
  const auto threads = [](int n, std::chrono::milliseconds deadline, const Body& body) {
    RunThreadRanks(n, {.deadline = deadline, .grace = std::chrono::milliseconds(20'000)}, body);
  };
  return {{"threads", threads},
          {"emulated_links",
           [threads](int n, std::chrono::milliseconds deadline, const Body& body) {
             const FreeLinks model;
             threads(n, deadline, [&](Communicator& communicator) {
               EmulatedLinks links(communicator, model, SteadyTime());
               body(links);
             });
           }},
          {"remote", [](int n, std::chrono::milliseconds deadline, const Body& body) {
             const ThreadWorldOptions world{.deadline = deadline, .grace = std::chrono::milliseconds(20'000)};
             RunLocalRemoteRanks(std::make_shared<LocalHub>(n), {.world = world}, body);
           }}};
}

inline const std::vector<int> kRankCounts = {1, 2, 3, 4, 7, 8};

class BackendTest : public testing::TestWithParam<Backend> {
 protected:
  // Far above what anything here takes; a test that reaches it has hung.
  void Run(int n, const Body& body) { GetParam().run(n, std::chrono::milliseconds(60'000), body); }
  void RunWithDeadline(int n, int milliseconds, const Body& body) {
    GetParam().run(n, std::chrono::milliseconds(milliseconds), body);
  }
};

#define PENSTOCK_FOR_ALL_BACKENDS(suite)                                   \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, testing::ValuesIn(Backends()), \
                           [](const auto& info) { return info.param.name; })

// The message of the E that `call` throws; fails the test when it throws something else or nothing.
template <typename E, typename Call>
std::string MessageOf(const Call& call) {
  try {
    call();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

inline testing::AssertionResult Contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

}  // namespace penstock::comm
