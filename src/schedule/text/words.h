// src/schedule/text/words.h
//
// Words that the printer and the parser of the text form share (docs/schedule_format.md): the magic line, letters of
// compute kinds, quoting, limits. Stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::schedule::text {

inline constexpr std::string_view kMagic = "penstock schedule";
inline constexpr int kVersion = 1;

// Limits that keep the memory of a parsed file within a constant factor of its length: counts that a few characters
// can ask for. `kMaxExpanded` bounds all "a..b" ranges and "v*n" repetitions of one file together.
inline constexpr int kMaxStages = 65535;
inline constexpr int kMaxMicroBatches = 1 << 20;
inline constexpr int kMaxRanks = 1 << 20;
inline constexpr int kMaxPlacements = 255;
inline constexpr int64_t kMaxExpanded = int64_t{1} << 24;

// F, B, I, W, R: what the compact form and hand-written lists call the compute kinds; '\0' for the others.
constexpr char LetterOf(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return 'F';
    case Kind::backward:
      return 'B';
    case Kind::backward_input:
      return 'I';
    case Kind::backward_weight:
      return 'W';
    case Kind::recompute:
      return 'R';
    case Kind::update:
    case Kind::check:
    case Kind::task:
    case Kind::send:
    case Kind::recv:
    case Kind::collective:
    case Kind::copy:
      return '\0';
  }
  return '\0';
}
std::optional<Kind> KindOfLetter(char letter);

// In double quotes, with \" \\ \n \r \t and \xHH for other control characters.
std::string Quote(std::string_view raw);
// The reverse; nullopt when `quoted` is not a whole quoted string.
std::optional<std::string> Unquote(std::string_view quoted);
// Can stand without quotes: a letter or underscore, then letters, digits and _ . / - [ ] ( ) %.
bool IsWord(std::string_view raw);
inline std::string QuoteUnlessWord(std::string_view raw) { return IsWord(raw) ? std::string(raw) : Quote(raw); }

// "0 1 2 3" -> "0..3"; runs of at least three consecutive numbers become ranges, of at least three equal ones "v*n".
std::string PrintIntegers(const std::vector<int32_t>& values, char separator);

// The edge of the stage graph that a message carries when it says none: the only one that leaves (op activation) or
// enters (op gradient) the stage that produced it. nullopt for other actions, and where there are several edges or
// none.
std::optional<int> EdgeOfMessage(const StageGraph& graph, const Key& key);

// Indices of groups by their ranks, in the time of a map (Schedule::GroupOf searches).
class GroupTable {
 public:
  explicit GroupTable(std::vector<std::vector<int32_t>>& groups);  // keeps the reference
  int32_t Of(const std::vector<int32_t>& ranks);                   // added when it is new
  void Add(std::vector<int32_t> ranks);                            // always the next index
  const std::vector<int32_t>& ranks(int32_t group) const { return groups_[group]; }
  int32_t size() const { return static_cast<int32_t>(groups_.size()); }

 private:
  std::vector<std::vector<int32_t>>& groups_;
  std::map<std::vector<int32_t>, int32_t> index_;
};

// What a schedule that says nothing about its parameters has: what stage s alone uses is unit s; then one unit per list
// of stages in `shared`. Holders are the ranks that the route runs the stages on; missing groups are added. UserError
// when that would be more than kMaxExpanded ranks in all.
Holders DefaultHolders(const Schedule& schedule, const std::vector<std::vector<uint16_t>>& shared, GroupTable& groups);

}  // namespace penstock::schedule::text
