// src/schedule/action.h
//
// One thing a rank does. Kinds are closed (a switch over them is checked by the compiler), operators are open
// (schedule/operators.h). What an action reads, writes, allocates and frees follows from its key (schedule/effects.h);
// it is not stored. Schedules have millions of actions, so an Action is 40 bytes of plain data.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace penstock::schedule {

enum class Kind : uint8_t {
  forward,
  backward,         // both halves
  backward_input,   // gradient of the stage's inputs (and of what is not deferred)
  backward_weight,  // gradient of the weights, from what backward_input stashed
  recompute,        // forward again, from the kept inputs, just before the backward
  update,           // optimizer on one parameter unit
  check,            // sets a predicate that guards read
  task,             // a registered operator on the compute or host stream
  send,
  recv,
  collective,
  copy,  // between tiers of one rank
};
inline constexpr int kKindCount = 12;
inline constexpr std::array<std::string_view, kKindCount> kKindNames = {
    "forward", "backward", "backward_input", "backward_weight", "recompute", "update", "check",
    "task",    "send",     "recv",           "collective",      "copy"};
static_assert(static_cast<int>(Kind::copy) == kKindCount - 1,
              "a new kind needs a name, effects, a price and a handler");
constexpr std::string_view Name(Kind k) { return kKindNames[static_cast<size_t>(k)]; }

constexpr bool IsBackwardKind(Kind k) {
  return k == Kind::backward || k == Kind::backward_input || k == Kind::backward_weight;
}
// Kinds that builders order; passes derive the others.
constexpr bool IsComputeKind(Kind k) { return k == Kind::forward || k == Kind::recompute || IsBackwardKind(k); }

// Index of an operator in the registry (schedule/operators.h); kNoOp for kinds that need none.
using OpId = uint16_t;
inline constexpr OpId kNoOp = 0;

// A stage, or a parameter unit. Stages of a component are 0 .. S-1; parameter units shared by several stages (tied
// embeddings) are numbered S, S+1, ... (schedule/holders.h).
struct Unit {
  uint8_t component = 0;
  uint16_t stage = 0;
  friend bool operator==(const Unit&, const Unit&) = default;
  friend auto operator<=>(const Unit&, const Unit&) = default;
};

// Identifies an action within its rank's list of one step.
//   micro_batch  global index in the step, -1 where there is none
//   part         sequence slice, segment, chunk or shard; for messages the edge of the stage graph; for gradients the
//                use; 0 where there is none
//   round        n-th visit of the same (kind, unit, micro-batch) in one step
//   step         0, or +k: belongs to the k-th next step
struct Key {
  Kind kind = Kind::forward;
  int8_t round = 0;
  int8_t step = 0;
  OpId op = kNoOp;
  Unit unit;
  int16_t part = 0;
  int32_t micro_batch = -1;
  friend bool operator==(const Key&, const Key&) = default;
  friend auto operator<=>(const Key&, const Key&) = default;
};
static_assert(sizeof(Key) <= 20);

// Streams of a rank. Channels are one per peer and direction, queues one per group: the instance is the action's
// peer_or_group.
enum class Stream : uint8_t { compute, host, copy_in, copy_out, send_channel, recv_channel, group_queue };
inline constexpr std::array<std::string_view, 7> kStreamNames = {"compute", "host", "copy_in", "copy_out",
                                                                 "send",    "recv", "group"};
constexpr std::string_view Name(Stream s) { return kStreamNames[static_cast<size_t>(s)]; }
constexpr Stream DefaultStream(Kind k) {
  switch (k) {
    case Kind::send:
      return Stream::send_channel;
    case Kind::recv:
      return Stream::recv_channel;
    case Kind::collective:
      return Stream::group_queue;
    case Kind::copy:
      return Stream::copy_out;
    case Kind::forward:
    case Kind::backward:
    case Kind::backward_input:
    case Kind::backward_weight:
    case Kind::recompute:
    case Kind::update:
    case Kind::check:
    case Kind::task:
      return Stream::compute;
  }
  return Stream::compute;
}

// Explicit dependencies of an action beyond its hazards: edges [first, first + count) of Schedule::edges.
struct EdgeRange {
  uint32_t first = 0;
  uint16_t count = 0;
  friend bool operator==(const EdgeRange&, const EdgeRange&) = default;
};

using SizeId = uint16_t;  // index in Schedule::sizes; 0: no bytes

struct Action {
  Key key;
  int32_t peer_or_group = -1;  // rank of the peer for send and recv, index of the group for collective
  int16_t guard = -1;          // runs only if predicate `guard`, set by an earlier check, is true; -1: always
  SizeId bytes = 0;
  EdgeRange extra_edges;
  Stream stream = Stream::compute;
  friend bool operator==(const Action&, const Action&) = default;
};

// The position of an action: index in the list of a rank.
struct ActionRef {
  int32_t rank = 0;
  int32_t index = 0;
  friend bool operator==(const ActionRef&, const ActionRef&) = default;
  friend auto operator<=>(const ActionRef&, const ActionRef&) = default;
};

// "forward 2.3" (stage 2, micro-batch 3), "send:activation 1.0 ->2", "collective:reduce 4 use 1". For people; the
// text form of a whole schedule is schedule/text.h.
std::string ToString(const Key& key);
std::string ToString(const Action& action);

}  // namespace penstock::schedule

template <>
struct std::hash<penstock::schedule::Key> {
  size_t operator()(const penstock::schedule::Key& k) const noexcept {
    uint64_t a = (uint64_t{static_cast<uint8_t>(k.kind)} << 56) ^ (uint64_t{static_cast<uint8_t>(k.round)} << 48) ^
                 (uint64_t{static_cast<uint8_t>(k.step)} << 40) ^ (uint64_t{k.op} << 24) ^
                 (uint64_t{k.unit.component} << 16) ^ k.unit.stage;
    const uint64_t b = (uint64_t{static_cast<uint16_t>(k.part)} << 32) ^ static_cast<uint32_t>(k.micro_batch);
    a ^= b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2);
    a ^= a >> 31;
    return static_cast<size_t>(a * 0xbf58476d1ce4e5b9ull);
  }
};
