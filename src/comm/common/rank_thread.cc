#include "comm/common/rank_thread.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <pthread.h>

#include "base/this_rank.h"

namespace penstock::comm {

void SetUpRankThread(int rank, int intra_op_threads, bool flush_denormals, const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  SetThisRank(rank);
  at::set_num_threads(intra_op_threads);
  at::globalContext().setFlushDenormal(flush_denormals);
  // Backward of any graph stays on the calling thread, also when devices come that have engine threads of their own.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

}  // namespace penstock::comm
