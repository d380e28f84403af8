// src/comm/threads/job.cc
//
// The work of each collective between threads. Reductions: shards of the element range, each added in blocks by the
// plan and written to every destination (no ring is needed where every rank sees every buffer). Gathers: copies, or
// for the variable-length kinds pointers.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/reduce_plan.h"
#include "comm/threads/rendezvous.h"

namespace penstock::comm {
namespace {

// Small enough to share between waiters, large enough that a claim (an atomic addition) costs nothing beside it.
constexpr int64_t kReduceShardBytes = 64 << 10;
constexpr int64_t kCopyShardBytes = 256 << 10;

struct Reduction {
  struct Shard {
    int64_t begin;
    int64_t end;
    size_t part;
  };
  at::ScalarType type;
  ReducePlan plan;
  std::vector<const void*> sources;
  std::vector<std::vector<Destination>> parts;  // destinations of one part of the elements
  std::vector<Shard> shards;

  void AddPart(int64_t begin, int64_t end, std::vector<Destination> destinations) {
    const int64_t step = std::max<int64_t>(1, kReduceShardBytes / static_cast<int64_t>(c10::elementSize(type)));
    for (int64_t at = begin; at < end; at += step) shards.push_back({at, std::min(end, at + step), parts.size()});
    parts.push_back(std::move(destinations));
  }
};

Job ReduceJob(const std::vector<Post>& posts) {
  const Signature& signature = posts[0].signature;
  auto reduction = std::make_shared<Reduction>();
  reduction->type = signature.type;
  std::vector<TreeNode> nodes;
  for (const Post& post : posts) {
    for (const at::Tensor& input : post.inputs) reduction->sources.push_back(input.const_data_ptr());
    nodes.insert(nodes.end(), post.nodes.begin(), post.nodes.end());
  }
  reduction->plan = IsTree(signature.kind) ? TreePlan(nodes, signature.detail)
                                           : FoldPlan(static_cast<int>(reduction->sources.size()));
  if (signature.bounds.empty()) {
    std::vector<Destination> all;
    for (const Post& post : posts) all.push_back({post.out.mutable_data_ptr(), 0});
    reduction->AddPart(0, signature.count, std::move(all));
  } else {
    for (size_t r = 0; r < posts.size(); ++r) {
      reduction->AddPart(signature.bounds[r], signature.bounds[r + 1],
                         {{posts[r].out.mutable_data_ptr(), signature.bounds[r]}});
    }
  }
  Job job;
  job.num_shards = static_cast<int64_t>(reduction->shards.size());
  job.run = [reduction](int64_t i) {
    const Reduction::Shard& shard = reduction->shards[i];
    RunReduce(reduction->plan, reduction->type, reduction->sources, reduction->parts[shard.part], shard.begin,
              shard.end);
  };
  return job;
}

struct Copies {
  struct Copy {
    char* to;
    const char* from;
    int64_t bytes;
  };
  std::vector<Copy> list;

  void Add(void* to, const void* from, int64_t bytes) {
    if (to == from) return;
    for (int64_t at = 0; at < bytes; at += kCopyShardBytes) {
      list.push_back(
          {static_cast<char*>(to) + at, static_cast<const char*>(from) + at, std::min(kCopyShardBytes, bytes - at)});
    }
  }
};

Job CopyJob(Copies copies) {
  auto shared = std::make_shared<const Copies>(std::move(copies));
  Job job;
  job.num_shards = static_cast<int64_t>(shared->list.size());
  job.run = [shared](int64_t i) {
    const Copies::Copy& copy = shared->list[i];
    std::memcpy(copy.to, copy.from, copy.bytes);
  };
  return job;
}

Job GatherJob(const std::vector<Post>& posts) {
  const Signature& signature = posts[0].signature;
  const auto item = static_cast<int64_t>(c10::elementSize(signature.type));
  Copies copies;
  for (const Post& to : posts) {
    for (size_t r = 0; r < posts.size(); ++r) {
      const int64_t first = signature.bounds[r] * item;
      copies.Add(static_cast<char*>(to.out.mutable_data_ptr()) + first, posts[r].inputs[0].const_data_ptr(),
                 signature.bounds[r + 1] * item - first);
    }
  }
  return CopyJob(std::move(copies));
}

Job BroadcastJob(const std::vector<Post>& posts) {
  const at::Tensor& from = posts[posts[0].signature.detail].out;
  Copies copies;
  for (const Post& to : posts) {
    copies.Add(to.out.mutable_data_ptr(), from.const_data_ptr(),
               from.numel() * static_cast<int64_t>(from.element_size()));
  }
  return CopyJob(std::move(copies));
}

// Receiver r gets input `pick(r)` of every member: the memory, in a tensor of its own (two ranks must not share one
// set of sizes, gradient and flags).
template <typename Pick>
Job HandOverJob(const std::vector<Post>& posts, const Pick& pick) {
  at::NoGradGuard no_grad;
  Job job;
  job.received.resize(posts.size());
  for (size_t r = 0; r < posts.size(); ++r) {
    for (const Post& from : posts) job.received[r].push_back(from.inputs[pick(r)].detach());
  }
  return job;
}

}  // namespace

Job MakeJob(const std::vector<Post>& posts) {
  switch (posts[0].signature.kind) {
    case CommKind::all_reduce:
    case CommKind::all_reduce_tree:
    case CommKind::reduce_scatter:
    case CommKind::reduce_scatter_tree:
      return ReduceJob(posts);
    case CommKind::all_gather:
      return GatherJob(posts);
    case CommKind::all_gather_v:
      return HandOverJob(posts, [](size_t) { return size_t{0}; });
    case CommKind::all_to_all_v:
      return HandOverJob(posts, [](size_t r) { return r; });
    case CommKind::broadcast:
      return BroadcastJob(posts);
    case CommKind::barrier:
      return {};
    case CommKind::send:
      break;
  }
  throw InternalError("a send is not a collective");
}

}  // namespace penstock::comm
