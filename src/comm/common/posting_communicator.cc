#include "comm/common/posting_communicator.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "comm/common/handover.h"
#include "comm/reduce_plan.h"

namespace penstock::comm {
namespace {

// Handed over when it was posted.
class DoneWork final : public Work {
 public:
  bool Done() const override { return true; }
  void Wait() override {}
  std::vector<at::Tensor> TakeTensors() override { return {}; }
};

void CheckTensor(const at::Tensor& tensor, const char* what) {
  PENSTOCK_CHECK(tensor.defined(), "{} is undefined", what);
  PENSTOCK_CHECK(tensor.is_cpu() && tensor.is_contiguous(), "{} must be a contiguous CPU tensor", what);
}

void CheckReducible(const at::Tensor& tensor, const char* what) {
  CheckTensor(tensor, what);
  PENSTOCK_CHECK(CanReduce(tensor.scalar_type()), "{} has type {}; float, double, int32 and int64 can be added", what,
                 c10::toString(tensor.scalar_type()));
}

void CheckLike(const at::Tensor& tensor, at::ScalarType type, int64_t count, const char* what) {
  CheckTensor(tensor, what);
  PENSTOCK_CHECK(tensor.scalar_type() == type, "{} has type {}, expected {}", what, c10::toString(tensor.scalar_type()),
                 c10::toString(type));
  PENSTOCK_CHECK(tensor.numel() == count, "{} has {} elements, expected {}", what, tensor.numel(), count);
}

}  // namespace

void PostingCommunicator::MakeWorld() {
  std::vector<int> everyone(size());
  std::iota(everyone.begin(), everyone.end(), 0);
  all_ = CreateGroup(std::move(everyone), "world");
}

Group PostingCommunicator::CreateGroup(std::vector<int> ranks, std::string name) {
  PENSTOCK_CHECK(!ranks.empty(), "a group without ranks");
  for (size_t i = 0; i < ranks.size(); ++i) {
    PENSTOCK_CHECK(ranks[i] >= 0 && ranks[i] < size(), "rank {} in a group of a world of {}", ranks[i], size());
    PENSTOCK_CHECK(i == 0 || ranks[i - 1] < ranks[i], "the ranks of a group must ascend: {} before {}", ranks[i - 1],
                   ranks[i]);
  }
  const int id = GroupId(ranks, name);
  return Group(std::move(ranks), std::move(name), rank(), id);
}

void PostingCommunicator::CheckMember(const Group& group) const {
  PENSTOCK_CHECK(group.rank() >= 0 && group.ranks()[group.rank()] == rank(), "rank {} is not a member of group {}",
                 rank(), group.ToString());
}

void PostingCommunicator::Count(CommKind kind, int64_t messages, int64_t bytes) {
  if (bytes > 0) traffic_.Add(kind, messages, bytes);
}

WorkPtr PostingCommunicator::Send(int peer, const Tag& tag, std::vector<at::Tensor> tensors) {
  PENSTOCK_CHECK(peer >= 0 && peer < size(), "send to rank {} in a world of {}", peer, size());
  CheckAlive("a send");
  int64_t bytes = 0;
  for (at::Tensor& tensor : tensors) {
    tensor = HandOver(tensor);
    bytes += BytesOf(tensor);
  }
  if (peer != rank()) Count(CommKind::send, 1, bytes);
  PostSend(peer, tag, std::move(tensors));
  static const WorkPtr done = std::make_shared<DoneWork>();
  return done;
}

WorkPtr PostingCommunicator::Recv(int peer, const Tag& tag) {
  PENSTOCK_CHECK(peer >= 0 && peer < size(), "receive from rank {} in a world of {}", peer, size());
  CheckAlive("a receive");
  return PostRecv(peer, tag);
}

WorkPtr PostingCommunicator::PostToGroup(const Group& group, Post post) {
  CheckAlive("a collective");
  return PostCollective(group, std::move(post));
}

WorkPtr PostingCommunicator::AllReduceSum(const Group& group, const Tag& tag, at::Tensor data) {
  CheckMember(group);
  CheckReducible(data, "the data of an all-reduce");
  const int64_t others = group.size() - 1;
  const auto bounds = ShardBounds(data.numel(), group.size());
  const int64_t own = bounds[group.rank() + 1] - bounds[group.rank()];
  Count(CommKind::all_reduce, 2 * others, (data.numel() - own + others * own) * data.element_size());
  return PostToGroup(group, {{CommKind::all_reduce, tag, data.scalar_type(), data.numel(), 0, {}}, {data}, {}, data});
}

WorkPtr PostingCommunicator::ReduceScatterSum(const Group& group, const Tag& tag, at::Tensor in,
                                              std::vector<int64_t> bounds, at::Tensor out) {
  CheckMember(group);
  CheckReducible(in, "the input of a reduce-scatter");
  CheckShardBounds(bounds, in.numel(), group.size());
  const int64_t own = bounds[group.rank() + 1] - bounds[group.rank()];
  CheckLike(out, in.scalar_type(), own, "the output of a reduce-scatter");
  Count(CommKind::reduce_scatter, group.size() - 1, (in.numel() - own) * in.element_size());
  return PostToGroup(
      group, {{CommKind::reduce_scatter, tag, in.scalar_type(), in.numel(), 0, std::move(bounds)}, {in}, {}, out});
}

WorkPtr PostingCommunicator::AllGather(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                                       at::Tensor out) {
  CheckMember(group);
  CheckTensor(out, "the output of an all-gather");
  CheckShardBounds(bounds, out.numel(), group.size());
  const int64_t own = bounds[group.rank() + 1] - bounds[group.rank()];
  CheckLike(in, out.scalar_type(), own, "the input of an all-gather");
  const int64_t others = group.size() - 1;
  Count(CommKind::all_gather, others, others * own * in.element_size());
  return PostToGroup(group,
                     {{CommKind::all_gather, tag, in.scalar_type(), out.numel(), 0, std::move(bounds)}, {in}, {}, out});
}

WorkPtr PostingCommunicator::AllGatherV(const Group& group, const Tag& tag, at::Tensor data) {
  CheckMember(group);
  PENSTOCK_CHECK(data.defined(), "the data of an all-gather is undefined");
  const at::ScalarType type = data.scalar_type();
  const int64_t others = group.size() - 1;
  Count(CommKind::all_gather_v, others, others * BytesOf(data));
  return PostToGroup(group, {{CommKind::all_gather_v, tag, type, 0, 0, {}}, {HandOver(data)}, {}, {}});
}

WorkPtr PostingCommunicator::AllToAllV(const Group& group, const Tag& tag, std::vector<at::Tensor> parts) {
  CheckMember(group);
  PENSTOCK_CHECK_EQ(parts.size(), static_cast<size_t>(group.size()));
  const at::ScalarType type = parts[0].defined() ? parts[0].scalar_type() : at::ScalarType::Undefined;
  int64_t messages = 0, bytes = 0;
  for (int i = 0; i < group.size(); ++i) {
    PENSTOCK_CHECK(parts[i].defined() && parts[i].scalar_type() == type,
                   "the parts of an all-to-all must be defined and of one type");
    parts[i] = HandOver(parts[i]);
    if (i == group.rank() || BytesOf(parts[i]) == 0) continue;
    ++messages;
    bytes += BytesOf(parts[i]);
  }
  Count(CommKind::all_to_all_v, messages, bytes);
  return PostToGroup(group, {{CommKind::all_to_all_v, tag, type, 0, 0, {}}, std::move(parts), {}, {}});
}

WorkPtr PostingCommunicator::Broadcast(const Group& group, const Tag& tag, int root, at::Tensor data) {
  CheckMember(group);
  PENSTOCK_CHECK(root >= 0 && root < group.size(), "root {} of group {}", root, group.ToString());
  CheckTensor(data, "the data of a broadcast");
  const int64_t others = group.size() - 1;
  if (root == group.rank()) Count(CommKind::broadcast, others, others * BytesOf(data));
  return PostToGroup(group, {{CommKind::broadcast, tag, data.scalar_type(), data.numel(), root, {}}, {}, {}, data});
}

WorkPtr PostingCommunicator::Barrier(const Group& group, const Tag& tag) {
  CheckMember(group);
  // A dissemination barrier takes ceil(log2 size) rounds.
  traffic_.Add(CommKind::barrier, std::bit_width(static_cast<unsigned>(group.size() - 1)), 0);
  return PostToGroup(group, {{CommKind::barrier, tag, at::ScalarType::Undefined, 0, 0, {}}, {}, {}, {}});
}

WorkPtr PostingCommunicator::PostTree(const Group& group, CommKind kind, const Tag& tag, Contributions nodes,
                                      int32_t n_leaves, std::vector<int64_t> bounds, at::Tensor out) {
  const int64_t count = bounds.empty() ? out.numel() : bounds.back();
  Post post{{kind, tag, out.scalar_type(), count, n_leaves, std::move(bounds)}, {}, {}, out};
  for (auto& [node, tensor] : nodes) {
    CheckLike(tensor, out.scalar_type(), count, "a contribution to a tree reduction");
    post.nodes.push_back(node);
    post.inputs.push_back(std::move(tensor));
  }
  return PostToGroup(group, std::move(post));
}

WorkPtr PostingCommunicator::AllReduceTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                                           at::Tensor out) {
  CheckMember(group);
  CheckReducible(out, "the output of a tree all-reduce");
  const int64_t others = group.size() - 1;
  const auto bounds = ShardBounds(out.numel(), group.size());
  const int64_t own = bounds[group.rank() + 1] - bounds[group.rank()];
  const auto brought = static_cast<int64_t>(nodes.size());
  Count(CommKind::all_reduce_tree, (brought > 0 ? others : 0) + (own > 0 ? others : 0),
        (brought * (out.numel() - own) + others * own) * out.element_size());
  return PostTree(group, CommKind::all_reduce_tree, tag, std::move(nodes), n_leaves, {}, std::move(out));
}

WorkPtr PostingCommunicator::ReduceScatterTree(const Group& group, const Tag& tag, Contributions nodes,
                                               int32_t n_leaves, std::vector<int64_t> bounds, at::Tensor out) {
  CheckMember(group);
  CheckReducible(out, "the output of a tree reduce-scatter");
  CheckShardBounds(bounds, bounds.empty() ? 0 : bounds.back(), group.size());
  const int64_t own = bounds[group.rank() + 1] - bounds[group.rank()];
  CheckLike(out, out.scalar_type(), own, "the output of a tree reduce-scatter");
  const auto brought = static_cast<int64_t>(nodes.size());
  Count(CommKind::reduce_scatter_tree, group.size() - 1, brought * (bounds.back() - own) * out.element_size());
  return PostTree(group, CommKind::reduce_scatter_tree, tag, std::move(nodes), n_leaves, std::move(bounds),
                  std::move(out));
}

}  // namespace penstock::comm
