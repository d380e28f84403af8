// src/schedule/contract.h
//
// What a builder or policy promises, and the verifier and the contract tests hold it to.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::schedule {

enum class CoverageRule : uint8_t { once, holders, iterated };
inline constexpr std::array<std::string_view, 3> kCoverageRuleNames = {"once", "holders", "iterated"};

// exact: bits of the single-rank oracle. own_oracle: bits of the technique's own single-process simulation.
// bounded: a tolerance with its reason. statistical: quality over seeds.
enum class Equivalence : uint8_t { exact, own_oracle, bounded, statistical };
inline constexpr std::array<std::string_view, 4> kEquivalenceNames = {"exact", "own-oracle", "bounded", "statistical"};

// What may overtake what. eager: buffered sends, one in-order program per rank. channelled: each channel and queue on
// its own. blocking: one in-order queue for all messages of a rank, a send waits for its receive.
enum class Transport : uint8_t { eager, channelled, blocking };
inline constexpr int kTransportCount = 3;
inline constexpr std::array<std::string_view, kTransportCount> kTransportNames = {"eager", "channelled", "blocking"};
constexpr std::string_view Name(Transport t) { return kTransportNames[static_cast<size_t>(t)]; }

struct Contract {
  CoverageRule coverage = CoverageRule::once;
  int staleness = 0;  // bound between parameter versions read by forward, read by backward and written by update
  Equivalence equivalence = Equivalence::exact;
  std::string reason;  // of a tolerance
  // Transports under which the schedule promises not to deadlock, by index of Transport.
  std::array<bool, kTransportCount> deadlock_free = {true, true, true};
  friend bool operator==(const Contract&, const Contract&) = default;
};

}  // namespace penstock::schedule
