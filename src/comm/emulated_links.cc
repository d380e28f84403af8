#include "comm/emulated_links.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <utility>

namespace penstock::comm {
namespace {

using Time = TimeSource::Time;

at::Tensor Integers(std::initializer_list<int64_t> values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

int64_t Ticks(Time time) { return time.time_since_epoch().count(); }
Time AtTicks(int64_t ticks) { return Time(Time::duration(ticks)); }

int64_t BytesOf(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<int64_t>(tensor.numel()) * static_cast<int64_t>(tensor.element_size()) : 0;
}

bool LengthsAreFree(CommKind kind) { return kind == CommKind::all_gather_v || kind == CommKind::all_to_all_v; }

}  // namespace

// What the members of a group know together: when they came. Resolved in order, with the same result on all.
class EmulatedLinks::Queue {
 public:
  struct Entry {
    CommKind kind;
    WorkPtr stamps;  // of each member: ticks, bytes, ticks of its own price or -1
    Time end;        // when resolved
  };
  Queue(EmulatedLinks* links, const Group& group)
      : links_(links),
        group_(group),
        clocks_(links->inner_.CreateGroup(group.ranks(), fmt::format("times of {}", group.name()))) {}

  std::shared_ptr<Entry> Add(CommKind kind, const Tag& tag, at::Tensor stamp) {
    auto entry = std::make_shared<Entry>(Entry{kind, links_->inner_.AllGatherV(clocks_, tag, std::move(stamp)), {}});
    open_.push_back(entry);
    return entry;
  }
  // Is its end known? Looks, or blocks until it is.
  bool Resolve(Entry& entry, bool block) {
    while (entry.stamps != nullptr) {
      Entry& front = *open_.front();
      if (!block && !front.stamps->Done()) return false;
      Finish(front, front.stamps->TakeTensors());
      front.stamps = nullptr;
      open_.pop_front();
    }
    return true;
  }

 private:
  void Finish(Entry& entry, const std::vector<at::Tensor>& stamps) {
    Time last = free_;
    int64_t bytes = 0;
    Time::duration price{-1};
    for (const at::Tensor& stamp : stamps) {
      const int64_t* values = stamp.const_data_ptr<int64_t>();
      last = std::max(last, AtTicks(values[0]));
      bytes = LengthsAreFree(entry.kind) ? bytes + values[1] : std::max(bytes, values[1]);
      price = std::max(price, Time::duration(values[2]));
    }
    if (entry.kind == CommKind::barrier) {
      entry.end = std::max(free_, AtTicks(stamps[group_.rank()].const_data_ptr<int64_t>()[0]));
      for (int i = 0; i < group_.size(); ++i) {
        if (i == group_.rank()) continue;
        const LinkSeconds way = links_->model_.Message(group_.ranks()[i], group_.ranks()[group_.rank()], 0);
        entry.end = std::max(
            entry.end, AtTicks(stamps[i].const_data_ptr<int64_t>()[0]) + links_->Scaled(way.latency + way.transfer));
      }
      return;
    }
    if (price.count() < 0)
      price = links_->Scaled(links_->model_.Collective(group_.ranks(), ToString(entry.kind), bytes));
    entry.end = free_ = last + price;
  }

  EmulatedLinks* const links_;
  const Group group_;
  const Group clocks_;
  std::deque<std::shared_ptr<Entry>> open_;
  Time free_{};
};

class EmulatedLinks::SendWork final : public TimedWork {
 public:
  SendWork(EmulatedLinks* links, WorkPtr inner, Time end) : links_(links), inner_(std::move(inner)), end_(end) {}
  bool Done() const override { return inner_->Done() && links_->time_.Now() >= end_; }
  void Wait() override {
    const bool blocked = !inner_->Done();
    inner_->Wait();
    links_->WaitUntil(end_, blocked);
  }
  std::vector<at::Tensor> TakeTensors() override {
    Wait();
    return {};
  }
  Time EndTime() override { return end_; }

 private:
  EmulatedLinks* const links_;
  const WorkPtr inner_;
  const Time end_;
};

class EmulatedLinks::RecvWork final : public TimedWork {
 public:
  RecvWork(EmulatedLinks* links, WorkPtr inner) : links_(links), inner_(std::move(inner)) {}
  bool Done() const override {
    if (!inner_->Done()) return false;
    Unpack();
    return links_->time_.Now() >= arrival_;
  }
  void Wait() override {
    const bool blocked = !inner_->Done();
    inner_->Wait();
    Unpack();
    links_->WaitUntil(arrival_, blocked);
  }
  std::vector<at::Tensor> TakeTensors() override {
    Wait();
    return std::exchange(tensors_, {});
  }
  Time EndTime() override {
    inner_->Wait();
    Unpack();
    return arrival_;
  }

 private:
  // The message is there: takes the time off it.
  void Unpack() const {
    if (unpacked_) return;
    tensors_ = inner_->TakeTensors();
    arrival_ = AtTicks(tensors_.back().const_data_ptr<int64_t>()[0]);
    tensors_.pop_back();
    unpacked_ = true;
  }

  EmulatedLinks* const links_;
  const WorkPtr inner_;
  mutable bool unpacked_ = false;
  mutable std::vector<at::Tensor> tensors_;
  mutable Time arrival_{};
};

class EmulatedLinks::CollectiveWork final : public TimedWork {
 public:
  CollectiveWork(EmulatedLinks* links, WorkPtr inner, std::shared_ptr<Queue> queue, std::shared_ptr<Queue::Entry> entry)
      : links_(links), inner_(std::move(inner)), queue_(std::move(queue)), entry_(std::move(entry)) {}
  bool Done() const override {
    return inner_->Done() && queue_->Resolve(*entry_, /*block=*/false) && links_->time_.Now() >= entry_->end;
  }
  void Wait() override {
    const bool blocked = !inner_->Done();
    inner_->Wait();
    queue_->Resolve(*entry_, /*block=*/true);
    links_->WaitUntil(entry_->end, blocked);
  }
  std::vector<at::Tensor> TakeTensors() override {
    Wait();
    return inner_->TakeTensors();
  }
  Time EndTime() override {
    queue_->Resolve(*entry_, /*block=*/true);
    return entry_->end;
  }

 private:
  EmulatedLinks* const links_;
  const WorkPtr inner_;
  const std::shared_ptr<Queue> queue_;
  const std::shared_ptr<Queue::Entry> entry_;
};

EmulatedLinks::EmulatedLinks(Communicator& inner, const LinkModel& model, TimeSource& time, double time_scale)
    : inner_(inner),
      model_(model),
      time_(time),
      time_scale_(time_scale),
      backend_(fmt::format("emulated links over {}", inner.backend())),
      channel_free_(inner.size()) {
  PENSTOCK_CHECK(std::isfinite(time_scale) && time_scale >= 0, "a time scale of {}", time_scale);
}

EmulatedLinks::~EmulatedLinks() = default;

Time::duration EmulatedLinks::Scaled(double seconds) const {
  PENSTOCK_CHECK(seconds >= 0 && std::isfinite(seconds), "the link model says {} s", seconds);
  // Up: nothing is over before its time.
  return Time::duration(static_cast<int64_t>(std::ceil(seconds * time_scale_ * 1e9)));
}

void EmulatedLinks::WaitUntil(Time end, bool blocked) {
  if (blocked || time_.Now() < end) ++waits_;
  waited_until_ = std::max(waited_until_, end);
  time_.SleepUntil(end);
}

WorkPtr EmulatedLinks::Send(int peer, const Tag& tag, std::vector<at::Tensor> tensors) {
  const Declared declared = std::exchange(declared_, {});
  PENSTOCK_CHECK(peer >= 0 && peer < size(), "send to rank {} in a world of {}", peer, size());
  const int64_t travels = std::accumulate(tensors.begin(), tensors.end(), int64_t{0},
                                          [](int64_t sum, const at::Tensor& t) { return sum + BytesOf(t); });
  LinkSeconds price;
  if (declared.price) {
    price = *declared.price;
  } else if (peer != rank()) {
    price = model_.Message(rank(), peer, declared.bytes.value_or(travels));
  }
  const Time end = std::max(time_.Now(), channel_free_[peer]) + Scaled(price.transfer);
  tensors.push_back(Integers({Ticks(end + Scaled(price.latency))}));
  WorkPtr work = inner_.Send(peer, tag, std::move(tensors));
  channel_free_[peer] = end;
  if (peer != rank() && travels > 0) traffic_.Add(CommKind::send, 1, travels);
  return std::make_shared<SendWork>(this, std::move(work), end);
}

WorkPtr EmulatedLinks::Recv(int peer, const Tag& tag) {
  return std::make_shared<RecvWork>(this, inner_.Recv(peer, tag));
}

template <typename Post>
WorkPtr EmulatedLinks::Collective(const Group& group, CommKind kind, const Tag& tag, int64_t bytes, const Post& post) {
  const Declared declared = std::exchange(declared_, {});
  const Time now = time_.Now();
  const Traffic before = inner_.traffic().of(kind);
  WorkPtr work = post();  // first: it says what is wrong with the arguments, and with the order
  const Traffic& after = inner_.traffic().of(kind);
  traffic_.Add(kind, after.messages - before.messages, after.bytes - before.bytes);
  auto& queue = queues_[group.id()];
  if (queue == nullptr) queue = std::make_shared<Queue>(this, group);
  const int64_t price = declared.price ? Scaled(declared.price->transfer + declared.price->latency).count() : -1;
  auto entry = queue->Add(kind, tag, Integers({Ticks(now), declared.bytes.value_or(bytes), price}));
  return std::make_shared<CollectiveWork>(this, std::move(work), queue, std::move(entry));
}

WorkPtr EmulatedLinks::AllReduceSum(const Group& group, const Tag& tag, at::Tensor data) {
  return Collective(group, CommKind::all_reduce, tag, BytesOf(data),
                    [&] { return inner_.AllReduceSum(group, tag, data); });
}

WorkPtr EmulatedLinks::ReduceScatterSum(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                                        at::Tensor out) {
  return Collective(group, CommKind::reduce_scatter, tag, BytesOf(in),
                    [&] { return inner_.ReduceScatterSum(group, tag, in, std::move(bounds), out); });
}

WorkPtr EmulatedLinks::AllGather(const Group& group, const Tag& tag, at::Tensor in, std::vector<int64_t> bounds,
                                 at::Tensor out) {
  return Collective(group, CommKind::all_gather, tag, BytesOf(out),
                    [&] { return inner_.AllGather(group, tag, in, std::move(bounds), out); });
}

WorkPtr EmulatedLinks::AllGatherV(const Group& group, const Tag& tag, at::Tensor data) {
  return Collective(group, CommKind::all_gather_v, tag, BytesOf(data),
                    [&] { return inner_.AllGatherV(group, tag, data); });
}

WorkPtr EmulatedLinks::AllToAllV(const Group& group, const Tag& tag, std::vector<at::Tensor> parts) {
  const int64_t bytes = std::accumulate(parts.begin(), parts.end(), int64_t{0},
                                        [](int64_t sum, const at::Tensor& t) { return sum + BytesOf(t); });
  return Collective(group, CommKind::all_to_all_v, tag, bytes,
                    [&] { return inner_.AllToAllV(group, tag, std::move(parts)); });
}

WorkPtr EmulatedLinks::Broadcast(const Group& group, const Tag& tag, int root, at::Tensor data) {
  return Collective(group, CommKind::broadcast, tag, BytesOf(data),
                    [&] { return inner_.Broadcast(group, tag, root, data); });
}

WorkPtr EmulatedLinks::Barrier(const Group& group, const Tag& tag) {
  return Collective(group, CommKind::barrier, tag, 0, [&] { return inner_.Barrier(group, tag); });
}

WorkPtr EmulatedLinks::AllReduceTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                                     at::Tensor out) {
  return Collective(group, CommKind::all_reduce_tree, tag, BytesOf(out),
                    [&] { return inner_.AllReduceTree(group, tag, std::move(nodes), n_leaves, out); });
}

WorkPtr EmulatedLinks::ReduceScatterTree(const Group& group, const Tag& tag, Contributions nodes, int32_t n_leaves,
                                         std::vector<int64_t> bounds, at::Tensor out) {
  const int64_t bytes =
      (bounds.empty() ? 0 : bounds.back()) * (out.defined() ? static_cast<int64_t>(out.element_size()) : 0);
  return Collective(group, CommKind::reduce_scatter_tree, tag, bytes, [&] {
    return inner_.ReduceScatterTree(group, tag, std::move(nodes), n_leaves, std::move(bounds), out);
  });
}

}  // namespace penstock::comm
