// src/comm/remote/remote_rank.h
//
// One rank of a world whose ranks meet over a Transport: its body on a thread of its own, set up like a rank thread
// (comm/thread_ranks.h), and one progress thread that drives the protocol. The caller's thread waits for both.
//
// Progress: the progress thread looks about 200 times, then sleeps 20 us doubling to 200 us, until something happens or
//           is posted; so a rank that waits leaves the core to one that computes. It also does the additions.
// Failure:  as RunThreadRanks, on every rank in the same words: whatever ends one rank is told to all, and at the end
// they
//           agree on one. A peer from which nothing is heard for `silence` (killed, stopped, unreachable) is PeerLost
//           with its last known action.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "comm/common/first_failure.h"
#include "comm/remote/transport.h"
#include "comm/thread_ranks.h"

namespace penstock::comm {

struct RemoteOptions {
  ThreadWorldOptions world;
  std::string_view backend = "remote";
  // How long a peer may be silent. Its progress thread says something every `heartbeat`.
  std::chrono::milliseconds silence{7'000};
  std::chrono::milliseconds heartbeat{500};
  // Asked a few times a second: why this peer can be known to be gone; empty: nothing known. May be empty.
  std::function<std::string(int peer)> why_gone = {};
  // And why this rank must end now; empty: it need not.
  std::function<std::string()> why_end = {};
};

// Runs the body as rank transport.rank() and ends the world together with the others. The failure, if there was one,
// is in `failure`. True when all peers were there to the end, so that the transport can be closed with them.
bool RunRemoteRank(Transport& transport, const RemoteOptions& options, const std::function<void(Communicator&)>& body,
                   FirstFailure& failure);

}  // namespace penstock::comm
