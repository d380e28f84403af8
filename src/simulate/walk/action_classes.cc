#include "simulate/walk/action_classes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <utility>

namespace penstock::simulate {

using schedule::Access;
using schedule::Action;
using schedule::BufferId;
using schedule::Effect;
using schedule::Key;
using schedule::Kind;
using schedule::Schedule;
using schedule::Stream;
using schedule::Transport;

namespace {

bool IsMessage(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

// Everything of an action but its micro-batch (and explicit edges).
struct ClassKey {
  std::array<uint64_t, 3> words;
  explicit ClassKey(const Action& a) {
    const Key& k = a.key;
    words[0] = uint64_t{static_cast<uint8_t>(k.kind)} | uint64_t{k.op} << 8 | uint64_t{k.unit.component} << 24 |
               uint64_t{k.unit.stage} << 32 | uint64_t{static_cast<uint16_t>(k.part)} << 48;
    words[1] = uint64_t{static_cast<uint32_t>(a.peer_or_group)} | uint64_t{a.bytes} << 32 |
               uint64_t{static_cast<uint16_t>(a.guard)} << 48;
    words[2] = uint64_t{static_cast<uint8_t>(k.round)} | uint64_t{static_cast<uint8_t>(k.step)} << 8 |
               uint64_t{static_cast<uint8_t>(a.stream)} << 16 | uint64_t{k.micro_batch >= 0} << 24;
  }
  bool operator==(const ClassKey& o) const { return words == o.words; }
  size_t hash() const {
    uint64_t h = words[0] * 0x9e3779b97f4a7c15ull;
    h ^= words[1] + (h >> 29);
    h *= 0xbf58476d1ce4e5b9ull;
    h ^= words[2] + (h >> 32);
    h *= 0x94d049bb133111ebull;
    return static_cast<size_t>(h ^ (h >> 29));
  }
};

// Class numbers of one rank by key: open addressing, emptied by a new epoch.
class KeyTable {
 public:
  void Clear() {
    ++epoch_;
    count_ = 0;
  }
  // The number of `key`; `next` when it is new.
  uint32_t Find(const ClassKey& key, uint32_t next) {
    if (2 * (count_ + 1) > slots_.size()) Grow();
    Slot& slot = At(key);
    if (slot.epoch == epoch_) return slot.number;
    slot = {key, epoch_, next};
    ++count_;
    return next;
  }

 private:
  struct Slot {
    ClassKey key{Action{}};
    uint32_t epoch = 0, number = 0;
  };
  Slot& At(const ClassKey& key) {
    const size_t mask = slots_.size() - 1;
    for (size_t i = key.hash() & mask;; i = (i + 1) & mask)
      if (slots_[i].epoch != epoch_ || slots_[i].key == key) return slots_[i];
  }
  void Grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    for (const Slot& slot : old)
      if (slot.epoch == epoch_) At(slot.key) = slot;
  }
  std::vector<Slot> slots_ = std::vector<Slot>(128);
  uint32_t epoch_ = 0;
  size_t count_ = 0;
};

size_t KindOf(const BufferId& id) {
  return static_cast<size_t>(id.buffer_class) * schedule::kSlotCount + static_cast<size_t>(id.slot);
}

}  // namespace

ActionClasses::ActionClasses(const Schedule& schedule, Transport transport) : schedule_(schedule) {
  Classify(transport);
  hazards_ = !only_compute_ && transport != Transport::eager;  // inside one stream its order says it all
  if (hazards_) FindUses();
}

void ActionClasses::Classify(Transport transport) {
  struct Lane {
    Stream stream;
    int32_t instance;
  };
  const int ranks = schedule_.num_ranks();
  class_of_.resize(ranks);
  first_class_.push_back(0);
  KeyTable table;
  std::vector<Lane> lanes;  // of the rank; few
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& list = schedule_.ranks[rank];
    auto& mine = class_of_[rank];
    mine.resize(list.size());
    table.Clear();
    lanes.clear();
    int32_t first = std::numeric_limits<int32_t>::max(), last = -1;
    for (size_t i = 0; i < list.size(); ++i) {
      const Action& a = list[i];
      const auto next = static_cast<uint32_t>(classes_.size());
      const bool shared = IsComputeKind(a.key.kind) || IsMessage(a.key.kind);
      if (shared && a.key.micro_batch >= 0) {
        first = std::min(first, a.key.micro_batch);
        last = std::max(last, a.key.micro_batch);
      }
      mine[i] = shared ? table.Find(ClassKey(a), next) : next;
      if (mine[i] != next) continue;
      has_messages_ |= IsMessage(a.key.kind);
      only_compute_ &= a.stream == Stream::compute;
      Lane lane{a.stream, a.stream >= Stream::send_channel ? a.peer_or_group : -1};
      if (transport == Transport::eager) lane = {Stream::compute, -1};
      if (transport == Transport::blocking && a.stream >= Stream::send_channel) lane = {Stream::send_channel, -1};
      size_t l = 0;
      while (l < lanes.size() && (lanes[l].stream != lane.stream || lanes[l].instance != lane.instance)) ++l;
      if (l == lanes.size()) lanes.push_back(lane);
      classes_.push_back({.sample = {rank, static_cast<int32_t>(i)}, .lane = num_lanes_ + static_cast<int32_t>(l)});
    }
    num_lanes_ += static_cast<int32_t>(lanes.size());
    first_class_.push_back(static_cast<uint32_t>(classes_.size()));
    first_micro_batch_.push_back(last < 0 ? 0 : first);
    micro_batches_.push_back(last < 0 ? 0 : last - first + 1);
  }
}

void ActionClasses::FindUses() {
  const schedule::EffectLister lister(schedule_);
  // Effects of all classes, and which kinds of buffers something off the compute stream touches.
  std::vector<Effect> effects;
  std::vector<size_t> begins;
  std::vector<char> shared(static_cast<size_t>(kBufferClassCount) * schedule::kSlotCount, 0);
  for (const ActionClass& c : classes_) {
    const Action& a = schedule_.at(c.sample);
    begins.push_back(effects.size());
    lister.Append(c.sample.rank, a, effects);
    if (a.stream != Stream::compute)
      for (size_t e = begins.back(); e < effects.size(); ++e) shared[KindOf(effects[e].buffer)] = 1;
  }
  begins.push_back(effects.size());

  std::unordered_map<BufferId, uint32_t> rows;  // of the rank: first cell of what differs in the micro-batch alone
  for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
    rows.clear();
    first_cell_.push_back(num_cells_);
    uint32_t cells = 0;
    const int32_t first = first_micro_batch_[rank], width = micro_batches_[rank];
    for (uint32_t n = first_class_[rank]; n < first_class_[rank + 1]; ++n) {
      ActionClass& c = classes_[n];
      const Action& a = schedule_.at(c.sample);
      const bool repeats = IsComputeKind(a.key.kind) || IsMessage(a.key.kind);
      c.first_use = static_cast<uint32_t>(uses_.size());
      for (size_t e = begins[n]; e < begins[n + 1]; ++e) {
        BufferId id = effects[e].buffer;
        if (!shared[KindOf(id)]) continue;
        const int32_t m = id.micro_batch;
        const bool in_range = m >= first && m < first + width;
        if (repeats && m != -1 && m != a.key.micro_batch) regular_ = false;
        if (in_range) id.micro_batch = 0;
        const auto [it, is_new] = rows.try_emplace(id, cells);
        if (is_new) cells += in_range ? width : 1;
        const bool own = repeats && in_range;
        uses_.push_back({.cell = it->second + (in_range && !own ? m - first : 0),
                         .per_micro_batch = own,
                         .read = effects[e].access == Access::read});
      }
      c.end_use = static_cast<uint32_t>(uses_.size());
    }
    num_cells_ += cells;
  }
}

}  // namespace penstock::simulate
