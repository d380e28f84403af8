// src/comm/threads/rendezvous.h
//
// One collective of a group: where its members meet. Each member posts what it brings; the last one turns the posts
// into shards of work, which any member that waits claims by an atomic counter. So there are no communication threads,
// and it cannot deadlock: one waiter alone can finish it, several share it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/common/signature.h"
#include "comm/communicator.h"
#include "comm/threads/world.h"

namespace penstock::comm {

// The work of a collective once all have posted.
struct Job {
  int64_t num_shards = 0;
  std::function<void(int64_t shard)> run;         // any shard on any thread, each once
  std::vector<std::vector<at::Tensor>> received;  // by group rank; empty for kinds that receive nothing
};
// posts: by group rank, signatures equal. InternalError when contributions contradict each other.
Job MakeJob(const std::vector<Post>& posts);

struct Rendezvous {
  explicit Rendezvous(int size) : posts(size), posted(new std::atomic<bool>[size]) {
    for (int i = 0; i < size; ++i) posted[i].store(false, std::memory_order_relaxed);
  }

  // Guarded by the queue's mutex until all have posted, then read only.
  std::vector<Post> posts;
  int num_posted = 0;
  int first = -1;  // group rank of the first one to post
  Job job;

  std::unique_ptr<std::atomic<bool>[]> posted;
  std::atomic<int64_t> claimed{0};
  std::atomic<int64_t> completed{0};
  std::atomic<bool> done{false};
};

}  // namespace penstock::comm
