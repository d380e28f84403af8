// src/comm/common/rank_thread.h
//
// What a thread that works for a rank needs first: all of it is thread-local in libtorch and not inherited.
#pragma once

#include <string>

namespace penstock::comm {

// Name, ThisRank(), intra-op threads, denormals, backward on the calling thread. Grad mode stays on.
void SetUpRankThread(int rank, int intra_op_threads, bool flush_denormals, const std::string& name);

}  // namespace penstock::comm
