// Collectives: posts and data of groups, between the rank's commands, the frames of others and the exchanges.
#include <ATen/ops/empty.h>

#include <cstring>
#include <utility>

#include "comm/common/handover.h"
#include "comm/remote/engine.h"

namespace penstock::comm {
namespace {

constexpr size_t kSpareScratch = 32;  // pieces kept for the next reduction

void WriteSignature(FrameWriter& frame, const Signature& s) {
  frame.Put(s.kind).Put(s.tag).Put(static_cast<int8_t>(s.type)).Put(s.count).Put(s.detail).PutList(s.bounds);
}

Signature ReadSignature(FrameReader& reader) {
  Signature s;
  s.kind = reader.Get<CommKind>();
  s.tag = reader.Get<Tag>();
  s.type = static_cast<at::ScalarType>(reader.Get<int8_t>());
  s.count = reader.Get<int64_t>();
  s.detail = reader.Get<int32_t>();
  s.bounds = reader.GetList<int64_t>();
  return s;
}

// Of what `post` brings for the member at `position`, where lengths are free.
std::vector<int64_t> SizesFor(const Post& post, int position) {
  if (post.signature.kind == CommKind::all_gather_v) return post.inputs[0].sizes().vec();
  if (post.signature.kind == CommKind::all_to_all_v) return post.inputs[position].sizes().vec();
  return {};
}

}  // namespace

GroupState& Engine::FindGroup(const std::vector<int>& ranks, const std::string& name) {
  auto& group = groups_[{name, ranks}];
  if (!group) group = std::make_unique<GroupState>(ranks, name, rank_);
  return *group;
}

void Engine::Do(CollectiveCommand command) {
  const Group& group = command.group;
  const auto id = static_cast<uint32_t>(group.id());
  auto known = own_groups_.find(group.id());
  if (known == own_groups_.end()) {
    known = own_groups_.emplace(group.id(), &FindGroup(group.ranks(), group.name())).first;
    known->second->own_id = id;
    for (const int r : group.ranks()) {
      if (r == rank_) continue;
      FrameWriter frame;
      frame.Put(FrameKind::group).Put(id).PutBytes(group.name()).PutList(group.ranks());
      Put(r, frame);
    }
  }
  GroupState& state = *known->second;
  for (int i = 0; i < state.size(); ++i) {
    if (i == state.position()) continue;
    FrameWriter frame;
    frame.Put(FrameKind::post).Put(id);
    WriteSignature(frame, command.post.signature);
    frame.PutList(command.post.nodes).PutList(SizesFor(command.post, i));
    Put(state.ranks()[i], frame);
  }
  const std::string fault = state.AddPost(
      state.position(), {command.post.signature, command.post.nodes, SizesFor(command.post, state.position())},
      shared_->namer());
  if (!fault.empty()) return OrderFault(fault);
  Collective& collective = state.Newest();
  collective.mine = std::move(command.post);
  collective.work = std::move(command.work);
  Advance(state);
}

void Engine::TakeGroup(int from, FrameReader& reader) {
  const auto id = reader.Get<uint32_t>();
  const std::string name(reader.GetBytes());
  peers_[from]->groups[id] = &FindGroup(reader.GetList<int>(), name);
}

void Engine::TakePost(int from, FrameReader& reader) {
  GroupState& state = *peers_[from]->groups.at(reader.Get<uint32_t>());
  RemotePost post{ReadSignature(reader), reader.GetList<TreeNode>(), reader.GetList<int64_t>()};
  const std::string fault = state.AddPost(state.PositionOf(from), std::move(post), shared_->namer());
  if (!fault.empty()) return OrderFault(fault);
  Advance(state);
}

void Engine::TakeData(int from, FrameReader& reader) {
  GroupState& state = *peers_[from]->groups.at(reader.Get<uint32_t>());
  const auto sequence = reader.Get<uint64_t>();
  DataFrame frame;
  frame.from = state.PositionOf(from);
  frame.phase = reader.Get<uint8_t>();
  frame.source = reader.Get<uint32_t>();
  frame.offset = reader.Get<int64_t>();
  frame.bytes = reader.Get<int64_t>();
  frame.is_inline = reader.Get<bool>();
  if (frame.is_inline) {
    frame.contents = reader.GetBytes();
  } else {
    frame.lane = reader.Get<uint32_t>();
  }
  Collective& collective = state.At(sequence);
  collective.early.push_back(std::move(frame));
  Advance(state);
}

void Engine::Advance(GroupState& state) {
  if (current_ == &state) return;  // called from inside an exchange of this group; the loop below goes on
  GroupState* const before = std::exchange(current_, &state);
  while (!state.empty() && state.front().mine && !shared_->failed()) {
    Collective& front = state.front();
    if (!front.exchange) {
      front.exchange = MakeExchange(*this, state.position(), state.size(), *front.mine);
      front.exchange->Start();
    }
    if (!front.told_all_posted && front.num_posted == state.size()) {
      front.told_all_posted = true;
      std::vector<RemotePost> posts;
      for (const auto& post : front.posts) posts.push_back(*post);
      try {
        front.exchange->AllPosted(posts);
      } catch (const Error& e) {
        OrderFault(fmt::format("collective {} of group {}: {}", state.first(), state.label(), e.what()));
        break;
      }
    }
    while (!front.early.empty()) {
      for (const DataFrame& frame : std::exchange(front.early, {})) front.exchange->Data(frame);
    }
    if (!front.told_all_posted || !front.exchange->Complete()) break;
    std::vector<at::Tensor> received = front.exchange->TakeReceived();
    const std::shared_ptr<RemoteCollectiveWork> work = std::move(front.work);
    state.Pop();  // lets go of the tensors, before it counts as over
    work->Finish(std::move(received));
  }
  state.UpdateWorks();
  current_ = before;
}

// The exchange that a transfer belongs to is at the front until all of its transfers are over.
void Engine::InExchange(GroupState& state, const Callback& over) {
  current_ = &state;
  over();
  current_ = nullptr;
  Advance(state);
}

void Engine::SendData(int position, DataFrame data, const void* from, const at::Tensor& keep, Callback sent) {
  GroupState& state = *current_;
  const int peer = state.ranks()[position];
  FrameWriter frame;
  frame.Put(FrameKind::data).Put(state.own_id).Put(state.first());
  frame.Put(data.phase).Put(data.source).Put(data.offset).Put(data.bytes).Put(data.bytes <= kInlineBytes);
  if (data.bytes <= kInlineBytes) {
    frame.PutBytes({static_cast<const char*>(from), static_cast<size_t>(data.bytes)});
    Put(peer, frame);
    return sent();
  }
  frame.Put(
      StartSend(peer, from, data.bytes, keep, [this, sent = std::move(sent), &state] { InExchange(state, sent); }));
  Put(peer, frame);
}

void Engine::ReceiveData(const DataFrame& frame, void* to, const at::Tensor& keep, Callback arrived) {
  GroupState& state = *current_;
  if (frame.is_inline) {
    PENSTOCK_CHECK_EQ(static_cast<int64_t>(frame.contents.size()), frame.bytes);
    if (frame.bytes > 0) std::memcpy(to, frame.contents.data(), frame.contents.size());
    return arrived();
  }
  StartReceive(state.ranks()[frame.from], frame.lane, to, frame.bytes, keep,
               [this, arrived = std::move(arrived), &state] { InExchange(state, arrived); });
}

at::Tensor Engine::TakeScratch() {
  if (scratch_.empty()) return at::empty({kPieceBytes}, at::TensorOptions(at::kByte));
  at::Tensor scratch = std::move(scratch_.back());
  scratch_.pop_back();
  return scratch;
}

void Engine::GiveScratch(at::Tensor scratch) {
  if (scratch_.size() < kSpareScratch) scratch_.push_back(std::move(scratch));
}

}  // namespace penstock::comm
