#include "schedule/verify/lifetimes.h"

#include <algorithm>
#include <unordered_map>

#include "schedule/effects.h"
#include "schedule/operators.h"

namespace penstock::schedule::verify {
namespace {

enum class State : uint8_t { never, live, freed };

struct Buffer {
  BufferId id;
  State state = State::never;
  int32_t writer = -1;        // node that wrote, allocated or freed it last
  int32_t first_reader = -1;  // since then: list in readers_
  int32_t fault_at = -1;      // node with a fault on this buffer: one per action is enough
  int64_t bytes = 0;
};

class Walk {
 public:
  Walk(const Schedule& schedule, const Numbering& numbering, const VerifyOptions& options, Faults& faults)
      : s_(schedule), numbering_(numbering), options_(options), faults_(faults) {
    hazards_.first.reserve(numbering.size() + 1);
    hazards_.first.push_back(0);
    FindSizes();
  }

  RankPeak Rank(int rank) {
    rank_ = rank;
    buffers_.clear();
    index_.clear();
    index_.reserve(s_.ranks[rank].size() * 2);
    live_.assign(kBufferClassCount, 0);
    live_bytes_ = 0;
    RankPeak peak;
    for (int i = 0; i < static_cast<int>(s_.ranks[rank].size()); ++i) {
      const Action& action = s_.ranks[rank][i];
      effects_.clear();
      AppendEffects(s_, rank, action, effects_);
      node_ = numbering_.of({rank, i});
      // Frees come last: the peak of an action is before them.
      for (const Effect& effect : effects_) {
        if (effect.access == Access::free) Track(peak);
        Apply(action, effect);
      }
      Track(peak);
      hazards_.first.push_back(static_cast<int64_t>(hazards_.nodes.size()));
    }
    FindLeaks();
    readers_.clear();
    return peak;
  }

  Hazards TakeHazards() { return std::move(hazards_); }

 private:
  // Bytes of boundaries and gradients, as far as messages and reductions of the schedule name them.
  void FindSizes() {
    edge_bytes_.resize(s_.graph.edges().size());
    unit_bytes_.resize(s_.holders.units.size());
    for (const auto& list : s_.ranks) {
      for (const Action& a : list) {
        if (a.bytes == 0) continue;
        if (a.key.kind == Kind::send || a.key.kind == Kind::recv) {
          edge_bytes_[a.key.part] = s_.sizes[a.bytes].upper_bound;
        } else if (a.key.kind == Kind::collective && a.key.unit.stage < unit_bytes_.size()) {
          unit_bytes_[a.key.unit.stage] = s_.sizes[a.bytes].upper_bound;
        }
      }
    }
  }
  int64_t BytesOf(const BufferId& id) const {
    const auto at = [](const std::vector<int64_t>& bytes, int i) {
      return i >= 0 && i < static_cast<int>(bytes.size()) ? bytes[i] : 0;
    };
    if (id.buffer_class == BufferClass::boundary) return at(edge_bytes_, id.part);
    if (id.buffer_class == BufferClass::gradient) return at(unit_bytes_, id.unit.stage);
    return 0;
  }

  Buffer& Find(const BufferId& id) {
    const auto [it, is_new] = index_.try_emplace(id, static_cast<int32_t>(buffers_.size()));
    if (is_new) {
      buffers_.push_back({.id = id, .bytes = BytesOf(id)});
      if (LifetimeOf(id.buffer_class) == Lifetime::persistent) SetLive(buffers_.back(), true);
    }
    return buffers_[it->second];
  }

  void SetLive(Buffer& buffer, bool live) {
    if ((buffer.state == State::live) == live) return;
    buffer.state = live ? State::live : State::freed;
    live_[static_cast<size_t>(buffer.id.buffer_class)] += live ? 1 : -1;
    live_bytes_ += live ? buffer.bytes : -buffer.bytes;
  }

  void Track(RankPeak& peak) const {
    peak.bytes = std::max(peak.bytes, live_bytes_);
    for (int c = 0; c < kBufferClassCount; ++c) peak.buffers_by_class[c] = std::max(peak.buffers_by_class[c], live_[c]);
  }

  void After(int32_t before) {
    if (before >= 0 && before != node_) hazards_.nodes.push_back(before);
  }
  void AfterReaders(Buffer& buffer) {
    for (int32_t r = buffer.first_reader; r >= 0; r = readers_[r].second) After(readers_[r].first);
    buffer.first_reader = -1;
  }

  void Apply(const Action& action, const Effect& effect) {
    Buffer& buffer = Find(effect.buffer);
    switch (effect.access) {
      case Access::read:
        if (buffer.state != State::live) Dead(action, buffer, "reads");
        After(buffer.writer);
        readers_.emplace_back(node_, buffer.first_reader);
        buffer.first_reader = static_cast<int32_t>(readers_.size()) - 1;
        return;
      case Access::write:
        if (buffer.state != State::live) Dead(action, buffer, "writes");
        break;
      case Access::allocate:
        if (buffer.state == State::live && Judged(buffer) && buffer.fault_at != node_) {
          buffer.fault_at = node_;
          faults_.Add(FaultCode::double_allocation, numbering_.ref(node_),
                      "'{}' on rank {} allocates the {}, which is live{}", ToString(action), rank_, ToString(buffer.id),
                      Since(buffer, "since"));
        }
        SetLive(buffer, true);
        break;
      case Access::accumulate:
        SetLive(buffer, true);
        break;
      case Access::free:
        if (buffer.state != State::live) Dead(action, buffer, "frees");
        SetLive(buffer, false);
        break;
    }
    After(buffer.writer);
    AfterReaders(buffer);
    buffer.writer = node_;
  }

  // Without messages boundaries come from nowhere, and a part of a step has no beginning and no end.
  bool Judged(const Buffer& buffer) const {
    return options_.expect_coverage && (options_.expect_messages || buffer.id.buffer_class != BufferClass::boundary);
  }

  std::string Since(const Buffer& buffer, std::string_view word) const {
    if (buffer.writer < 0) return {};
    return fmt::format(" {} '{}'", word, ToString(s_.at(numbering_.ref(buffer.writer))));
  }

  void Dead(const Action& action, Buffer& buffer, std::string_view verb) {
    if (!Judged(buffer) || buffer.fault_at == node_) return;
    buffer.fault_at = node_;
    if (buffer.state == State::never) {
      faults_.Add(FaultCode::use_before_allocation, numbering_.ref(node_),
                  "'{}' on rank {} {} the {}, which nothing has allocated before", ToString(action), rank_, verb,
                  ToString(buffer.id));
      SetLive(buffer, true);  // one fault, not one per use
    } else if (verb == "frees") {
      faults_.Add(FaultCode::double_free, numbering_.ref(node_), "'{}' on rank {} frees the {} again{}",
                  ToString(action), rank_, ToString(buffer.id), Since(buffer, "after"));
    } else {
      faults_.Add(FaultCode::use_after_free, numbering_.ref(node_), "'{}' on rank {} {} the {}, which is freed{}",
                  ToString(action), rank_, verb, ToString(buffer.id), Since(buffer, "since"));
    }
  }

  void FindLeaks() {
    for (const Buffer& buffer : buffers_) {
      if (buffer.state != State::live || LifetimeOf(buffer.id.buffer_class) != Lifetime::inside_step) continue;
      if (!Judged(buffer) || (buffer.id.buffer_class == BufferClass::gradient && !options_.expect_updates)) continue;
      const ActionRef where = buffer.writer >= 0 ? numbering_.ref(buffer.writer) : ActionRef{rank_, -1};
      faults_.Add(FaultCode::leak, where, "rank {} still holds the {} at the end of the step: nothing frees it{}",
                  rank_, ToString(buffer.id), Since(buffer, "after"));
    }
  }

  const Schedule& s_;
  const Numbering& numbering_;
  const VerifyOptions& options_;
  Faults& faults_;
  std::vector<int64_t> edge_bytes_, unit_bytes_;
  Hazards hazards_;
  // Of the rank in work.
  int rank_ = 0;
  int32_t node_ = 0;
  std::vector<Buffer> buffers_;
  std::unordered_map<BufferId, int32_t> index_;
  std::vector<std::pair<int32_t, int32_t>> readers_;  // (node, next in the list of its buffer)
  std::vector<Effect> effects_;
  std::vector<int64_t> live_;
  int64_t live_bytes_ = 0;
};

}  // namespace

Hazards CheckLifetimes(const Schedule& schedule, const Numbering& numbering, const VerifyOptions& options,
                       Faults& faults, std::vector<RankPeak>& peaks) {
  Walk walk(schedule, numbering, options, faults);
  peaks.clear();
  for (int r = 0; r < schedule.num_ranks(); ++r) peaks.push_back(walk.Rank(r));
  return walk.TakeHazards();
}

}  // namespace penstock::schedule::verify
