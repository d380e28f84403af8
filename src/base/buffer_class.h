// src/base/buffer_class.h
//
// What a buffer holds, in which form and where (design: effects). One enumeration for the schedule's effects, the
// memory model and the counting allocator, so that predicted and measured peaks are split by the same classes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock {

enum class BufferClass : uint8_t {
  parameter,
  gradient,
  optimizer_state,
  activation,
  boundary,
  message,
  statistic,
  rows,
};
inline constexpr int kBufferClassCount = 8;
inline constexpr std::array<std::string_view, kBufferClassCount> kBufferClassNames = {
    "parameter", "gradient", "optimizer_state", "activation", "boundary", "message", "statistic", "rows"};
constexpr std::string_view Name(BufferClass c) { return kBufferClassNames[static_cast<size_t>(c)]; }

enum class BufferForm : uint8_t { full, shard, slice, indexed, partial_sum };
inline constexpr std::array<std::string_view, 5> kBufferFormNames = {"full", "shard", "slice", "indexed",
                                                                     "partial_sum"};
constexpr std::string_view Name(BufferForm f) { return kBufferFormNames[static_cast<size_t>(f)]; }

enum class Tier : uint8_t { device, host, disk };
inline constexpr std::array<std::string_view, 3> kTierNames = {"device", "host", "disk"};
constexpr std::string_view Name(Tier t) { return kTierNames[static_cast<size_t>(t)]; }

}  // namespace penstock
