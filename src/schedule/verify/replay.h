// src/schedule/verify/replay.h
//
// Replays a schedule without costs under a transport. Every action waits for what is before it in its lane, for its
// hazards and explicit edges, and where it meets others for them:
//   eager       one lane per rank, a send never waits, a receive waits for its send
//   channelled  one lane per stream (channels and queues one per peer and group), a send and its receive meet
//   blocking    one lane for all messages and collectives of a rank, one per other stream; a send and its receive meet
// Actions that meet become one node, so that a deadlock is a cycle (or a wait for something that never comes).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/verify/lifetimes.h"
#include "schedule/verify/meetings.h"

namespace penstock::schedule::verify {

// (before, after): what holds under every transport beside the hazards of a rank, also between ranks.
using Edges = std::vector<std::pair<int32_t, int32_t>>;

// The explicit edges; without messages also the edges of the stage graph from producer to consumer.
Edges FindEdges(const Schedule& schedule, const Numbering& numbering, const VerifyOptions& options);

TransportVerdict Replay(const Schedule& schedule, Transport transport, const Numbering& numbering,
                        const Meetings& meetings, const Hazards& hazards, const Edges& edges);

}  // namespace penstock::schedule::verify
