// src/schedule/text/parser.h
//
// Reads the text form (docs/schedule_format.md): one pass over the lines, then what was left out is derived and every
// index is held against what the file defines. Memory and time are linear in the length of the text, apart from what
// the limits of schedule/text/words.h allow. One parser reads one text, once; its methods are grouped by the file that
// defines them. Every error is a UserError that starts with "source:line: ".
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/text/words.h"

namespace penstock::schedule::text {

inline constexpr int kUnset = -1;
inline constexpr int kOwnStage = -2;  // a stage that was left out: the one of the rank's position

// The keys of the head, and 'rank', which ends it.
inline const std::vector<std::string> kHeaderKeys = {
    "name",     "ranks",      "stages",       "edge",     "micro-batches", "pipeline",   "placement",
    "replicas", "replica-of", "placement-of", "override", "contract",      "recompute",  "stage-options",
    "copies",   "group",      "unit",         "shared",   "size",          "edge-table", "rank"};

// What a message shows of a word of the file.
std::string Show(std::string_view word);

class Parser {
 public:
  Parser(std::string_view text, std::string_view source);  // keeps the view of `text`
  Schedule Run();

 private:
  // ---- parser.cc: from line to line ----
  // Run splits the text into lines and the lines into words; ParseLine hands a line to the magic line, to the head or,
  // after the first 'rank', to the actions. Fail is about the line that is being read, FailAt about any.

  void ParseLine();

  template <typename... Args>
  [[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) const {
    FailAt(line_, fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void FailAt(int line, const std::string& message) const;

  // ---- tokens.cc: words, and the values that one word says ----
  // Tokenize fills words_; Next, Expect and ExpectEnd walk through them. The others read one word as a value that both
  // the head and the actions have; `what` names it in the message. None of these changes the schedule.

  // Splits at blanks, up to a comment ('#' at the start of a word). A double quote starts a string that may hold both.
  void Tokenize(std::string_view line);
  bool Done() const { return next_ == words_.size(); }
  std::string_view Next(std::string_view what);
  void Expect(std::string_view word);
  void ExpectEnd() const;

  int64_t Integer(std::string_view word, std::string_view what, int64_t low, int64_t high) const;
  std::string Text(std::string_view word, std::string_view what) const;
  // "3@7": 3, and 7 when there is one.
  std::pair<std::string_view, std::string_view> SplitAt(std::string_view word, char separator) const;
  Unit ParseUnit(std::string_view word) const;
  int32_t ParseGroupIndex(std::string_view word) const;
  ActionRef ParseRef(std::string_view word) const;
  std::vector<int32_t> GroupRanks(std::vector<int32_t> ranks) const;
  static std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

  // Appends what one word says: "7", "0..3" or "5*8".
  template <typename T>
  void ExpandInto(std::vector<T>& values, std::string_view word, std::string_view what, int64_t low, int64_t high) {
    int64_t first = 0, count = 1, stride = 0;
    if (const size_t dots = word.find(".."); dots != std::string_view::npos) {
      first = Integer(word.substr(0, dots), what, low, high);
      count = Integer(word.substr(dots + 2), what, first, high) - first + 1;
      stride = 1;
    } else if (const size_t star = word.find('*'); star != std::string_view::npos) {
      first = Integer(word.substr(0, star), what, low, high);
      count = Integer(word.substr(star + 1), "repetition", 1, kMaxExpanded);
    } else {
      first = Integer(word, what, low, high);
    }
    expanded_ += count;
    if (expanded_ > kMaxExpanded)
      Fail("ranges and repetitions of this file stand for more than {} numbers", kMaxExpanded);
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(first + i * stride));
  }
  template <typename T>
  std::vector<T> IntegersToEnd(std::string_view what, int64_t low, int64_t high) {
    std::vector<T> values;
    while (!Done()) ExpandInto(values, Next(what), what, low, high);
    return values;
  }
  template <typename Names>
  int IndexOf(const Names& names, std::string_view word, std::string_view what) const {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == word) return static_cast<int>(i);
    Fail("{} is not {}{}", Show(word), what, Nearest(word, {names.begin(), names.end()}));
  }

  // ---- header_lines.cc: the magic line and the head ----
  // ParseHeader reads one line of the head by its key. What the schedule can hold at once goes into s_; what depends on
  // lines that may come later waits in the members below for finish.cc.

  void ParseMagic();
  void ParseHeader(std::string_view key);
  // A key that may stand once.
  void Once(int& line_of) const;
  int64_t OnlyInteger(int64_t low, int64_t high) { return Integer(Next("a number"), words_[0], low, high); }

  void ParseEdge();
  void ParsePlacement();
  void ParseOverride();
  void ParseContractWord(std::string_view word);
  void ParseGroup();
  void ParseUnitLine();
  void ParseSize();

  // ---- action_lines.cc: the lists of the ranks ----
  // ParseRank starts a list; ParseCompact reads short forms up to the end of the line, ParseActionLine one action in
  // full: its kind, its unit, then one attribute a word. What an action left out is noted in own_stage_, own_edge_ and
  // own_peer_ for finish.cc.

  struct CompactWord {
    int stage = kOwnStage;
    Kind kind = Kind::forward;
    std::string_view micro_batch;
  };
  // "F3", "2B10": nullopt when it is not of that form.
  static std::optional<CompactWord> AsCompact(std::string_view word);
  static bool IsMessage(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

  void ParseRank();
  void ParseCompact();
  void ParseActionLine();
  void AddAction(const Action& a);

  void ParseKind(std::string_view word, Action& a) const;
  void ParseActionUnit(std::string_view word, Key& key) const;
  void ParseAttribute(std::string_view word, Action& a);
  void ParseStream(std::string_view word, Action& a) const;
  void ParsePeer(std::string_view rank, Kind side, Action& a);
  int32_t ParseGroupOf(std::string_view value);
  SizeId ParseBytes(std::string_view value);
  void ParseAfter(std::string_view value, Action& a);

  // ---- finish.cc: what was left out ----
  // Finish runs after the last line and calls the others, those of checks.cc among them, in the order in which one
  // builds on another: replicas, stages, placements, route, options, messages, groups, units, actions.

  void Finish();
  void FinishReplicas();
  void FinishStages();
  void FinishPlacements();
  // Stage s is on the position of the rank that computes on it first.
  std::vector<int> PlacementOfActions() const;
  void FinishOptions();
  // The edge of a message follows from the stage that produced it, the peer from the edge and the route.
  void FinishMessages();
  void FinishUnits();
  int LineOf(ActionRef ref) const { return action_lines_[ref.rank][ref.index]; }

  // ---- checks.cc: whether the indices exist ----
  // Each holds the indices of one part of the schedule against what the file defines; nothing is changed.

  void CheckRoute() const;
  void CheckGroups() const;
  void CheckActions() const;
  void CheckEdge(ActionRef e, int line) const;

  struct Placement {
    int line = 0;
    std::string name;            // or
    std::vector<int> positions;  // of every stage
  };
  // Where a key of the head was said; kUnset when it was not.
  struct Lines {
    int name = kUnset, ranks = kUnset, stages = kUnset, edge = kUnset, micro_batches = kUnset, pipeline = kUnset,
        placement = kUnset, replicas = kUnset, placement_of = kUnset, override_line = kUnset, contract = kUnset,
        recompute = kUnset, stage_options = kUnset, unit = kUnset, shared = kUnset, edge_table = kUnset,
        copies = kUnset;
  };

  const std::string_view text_;
  const std::string source_;
  int line_ = 0;
  std::vector<std::string_view> words_;
  size_t next_ = 0;
  bool seen_magic_ = false;
  int64_t expanded_ = 0;

  Schedule s_;
  GroupTable groups_;
  Lines lines_;
  int num_ranks_ = kUnset, num_stages_ = kUnset, micro_batches_ = kUnset, replicas_ = 1;
  bool explicit_replicas_ = false, no_edges_ = false, no_placement_ = false, no_units_ = false;
  bool has_peer_ = false, has_part_ = false;  // said by the action of this line
  std::vector<StageEdge> edges_;
  std::vector<Placement> placements_;
  std::vector<int32_t> recompute_;
  std::vector<std::vector<uint16_t>> shared_;
  std::map<std::string, SizeId, std::less<>> size_ids_;
  std::vector<int> group_lines_, unit_lines_;
  std::vector<std::vector<int>> action_lines_;
  std::vector<ActionRef> own_stage_, own_edge_, own_peer_;  // actions that left it out
};

}  // namespace penstock::schedule::text
