// src/schedule/effects.h
//
// What an action reads, writes, allocates and frees: a function of (kind, operator, unit, micro-batch, part) and of
// the schedule's tables. Hazards in program order (read after write, write after read, write after write) over these
// buffers are the dependencies inside a rank.
//
// The buffers of a training step on one rank:
//   parameter(u)            persistent; read by forward, recompute, backward; written by update
//   optimizer_state(u)      persistent; read and written by update
//   boundary value (e, m)   the tensors of edge e: allocated by the producer's forward or by recv; consumed (read and
//                           freed) by the consumer's forward or by send
//   boundary gradient (e,m) allocated by the consumer's backward(_input) or by recv; consumed by the producer's
//                           backward(_input) or by send
//   saved inputs (s, m)     activation, stages with recomputation: allocated by forward, consumed by recompute
//   saved graph (s, m)      activation: allocated by forward (or recompute), consumed by backward(_input)
//   weight stash (s, m)     activation: allocated by backward_input, consumed by backward_weight
//   gradient (u, use)       partial sums: created and accumulated by backward halves; reduced in place by
//                           collective:reduce; consumed by update, or by collective:sum_uses for shared units
//   gradient (u, total)     shared units: allocated by collective:sum_uses, consumed by update
//   statistics              until the end of the step: loss of (s, m); sum of squares of u; the gathered ones; the
//   verdict
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/buffer_class.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// Which of a unit's buffers of one class.
enum class Slot : uint8_t {
  value,  // parameter, optimizer state, boundary value, gradient
  boundary_gradient,
  saved_inputs,
  saved_graph,
  weight_stash,
  loss,
  norm,
  gathered,
  verdict,
};
inline constexpr int kSlotCount = 9;

// part of a gradient buffer that is the total over the uses of a shared unit.
inline constexpr int16_t kTotalPart = -1;

struct BufferId {
  BufferClass buffer_class = BufferClass::activation;
  Slot slot = Slot::value;
  Tier tier = Tier::device;
  int8_t step = 0;
  Unit unit;
  int16_t part = 0;  // edge for boundaries, use (or kTotalPart) for gradients
  int32_t micro_batch = -1;
  friend bool operator==(const BufferId&, const BufferId&) = default;
  friend auto operator<=>(const BufferId&, const BufferId&) = default;
};
std::string ToString(const BufferId& buffer);

enum class Access : uint8_t {
  read,
  write,       // must exist
  allocate,    // must not exist; written
  accumulate,  // created on first use, then added to
  free,        // must exist
};

enum class Lifetime : uint8_t { inside_step, whole_step /* freed when the step ends */, persistent };
Lifetime LifetimeOf(BufferClass buffer_class);

struct Effect {
  BufferId buffer;
  Access access = Access::read;
  friend bool operator==(const Effect&, const Effect&) = default;
};

// Which halves of a gradient an action contributes to (use, micro-batch).
enum Half : uint8_t { kNoHalf = 0, kInputHalf = 1, kWeightHalf = 2, kBothHalves = 3 };
constexpr Half HalvesOf(Kind kind) {
  return kind == Kind::backward          ? kBothHalves
         : kind == Kind::backward_input  ? kInputHalf
         : kind == Kind::backward_weight ? kWeightHalf
                                         : kNoHalf;
}

// Appends the effects of `action` on `rank` to `effects`, reads first, frees last. Whoever walks a whole schedule uses
// an EffectLister.
void AppendEffects(const Schedule& schedule, int rank, const Action& action, std::vector<Effect>& effects);

// The gradients a stage's backward contributes to: (unit, use) pairs, own unit first.
struct UseRef {
  int unit = 0;  // index in Holders::units
  int use = 0;
};
std::vector<UseRef> UsesOfStage(const Schedule& schedule, int stage);

// Effects of many actions of one schedule: what follows from its tables alone is found once. The schedule's tables
// (graph, holders, groups, route, options) must not change while it is used; its lists may.
class EffectLister {
 public:
  explicit EffectLister(const Schedule& schedule);
  void Append(int rank, const Action& action, std::vector<Effect>& effects) const;
  const std::vector<UseRef>& uses(int stage) const { return uses_[stage]; }

 private:
  const Schedule& schedule_;
  std::vector<std::vector<UseRef>> uses_;  // [stage]
};

}  // namespace penstock::schedule

template <>
struct std::hash<penstock::schedule::BufferId> {
  size_t operator()(const penstock::schedule::BufferId& b) const noexcept {
    uint64_t a = (uint64_t{static_cast<uint8_t>(b.buffer_class)} << 56) ^
                 (uint64_t{static_cast<uint8_t>(b.slot)} << 48) ^ (uint64_t{static_cast<uint8_t>(b.tier)} << 44) ^
                 (uint64_t{static_cast<uint8_t>(b.step)} << 32) ^ (uint64_t{b.unit.component} << 16) ^ b.unit.stage;
    const uint64_t c = (uint64_t{static_cast<uint16_t>(b.part)} << 32) ^ static_cast<uint32_t>(b.micro_batch);
    a ^= c + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2);
    a ^= a >> 29;
    return static_cast<size_t>(a * 0xbf58476d1ce4e5b9ull);
  }
};
