// src/schedule/text/action_lines.cc
//
// The lists of the ranks: short forms, and actions in full with their attributes.
#include <algorithm>
#include <charconv>
#include <limits>

#include "schedule/operators.h"
#include "schedule/text/parser.h"

namespace penstock::schedule::text {
namespace {

bool IsUnitWord(std::string_view word) {
  return (word[0] >= '0' && word[0] <= '9') || (word.size() > 1 && word[0] == 'c' && word[1] >= '0' && word[1] <= '9');
}

// A message operator serves send and recv.
Kind Side(Kind kind) { return kind == Kind::recv ? Kind::send : kind; }

std::vector<std::string> OperatorsOf(Kind kind) {
  std::vector<std::string> names;
  for (const auto& [name, op] : Registry<Operator>::All())
    if (Side(op.kind) == Side(kind)) names.push_back(name);
  return names;
}

}  // namespace

std::optional<Parser::CompactWord> Parser::AsCompact(std::string_view word) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0;
  while (i < word.size() && digit(word[i])) ++i;
  if (i > 6 || i == word.size()) return std::nullopt;
  const auto kind = KindOfLetter(word[i]);
  if (!kind || i + 1 == word.size() || !std::all_of(word.begin() + i + 1, word.end(), digit)) return std::nullopt;
  CompactWord compact;
  compact.kind = *kind;
  compact.micro_batch = word.substr(i + 1);
  if (i > 0) std::from_chars(word.data(), word.data() + i, compact.stage);
  return compact;
}

void Parser::ParseRank() {
  next_ = 1;
  std::string_view number = Next("the rank");
  const bool colon = number.back() == ':';
  if (colon) number.remove_suffix(1);
  const int64_t rank = Integer(number, "rank", 0, kMaxRanks - 1);
  if (rank != s_.num_ranks())
    Fail("rank {} stands where rank {} is due; ranks follow in order, each once, also those that do nothing", rank,
         s_.num_ranks());
  s_.ranks.emplace_back();
  action_lines_.emplace_back();
  if (colon) ParseCompact();
  ExpectEnd();
}

void Parser::ParseCompact() {
  while (!Done()) {
    const std::string_view word = Next("an action");
    const auto compact = AsCompact(word);
    if (!compact)
      Fail("{} is not an action of the short form ([STAGE]F|B|I|W|R and the micro-batch: F0, 2B3)", Show(word));
    Action a;
    a.key.kind = compact->kind;
    a.key.micro_batch = static_cast<int32_t>(Integer(compact->micro_batch, "micro-batch", 0, kMaxMicroBatches - 1));
    if (compact->stage > kMaxStages - 1) Fail("stage {} is not in 0..{}", compact->stage, kMaxStages - 1);
    if (compact->stage == kOwnStage)
      own_stage_.push_back({s_.num_ranks() - 1, static_cast<int32_t>(s_.ranks.back().size())});
    else
      a.key.unit.stage = static_cast<uint16_t>(compact->stage);
    AddAction(a);
  }
}

void Parser::ParseActionLine() {
  next_ = 0;
  if (words_[0] != "recompute" && std::find(kHeaderKeys.begin(), kHeaderKeys.end(), words_[0]) != kHeaderKeys.end())
    Fail("{} belongs into the head, before the first 'rank' line", Show(words_[0]));
  if (AsCompact(words_[0])) return ParseCompact();
  Action a;
  ParseKind(Next("the kind"), a);
  a.stream = DefaultStream(a.key.kind);
  if (!Done() && IsUnitWord(words_[next_])) {
    ParseActionUnit(Next("the unit"), a.key);
  } else if (a.key.kind != Kind::check) {
    Fail("{} needs a unit: 'STAGE.MICRO-BATCH', or 'UNIT' where there is no micro-batch", Name(a.key.kind));
  }
  while (!Done()) ParseAttribute(Next("a word"), a);
  if (a.key.kind == Kind::collective && !has_peer_)
    Fail("a collective needs its group: 'group=NUMBER' of a 'group' line, or the ranks: 'group={{0,2}}'");
  const ActionRef here{s_.num_ranks() - 1, static_cast<int32_t>(s_.ranks.back().size())};
  if (IsMessage(a.key.kind) && !has_part_) own_edge_.push_back(here);
  if (IsMessage(a.key.kind) && !has_peer_) own_peer_.push_back(here);
  has_peer_ = has_part_ = false;
  if (IsComputeKind(a.key.kind) && a.key.micro_batch < 0)
    Fail("{} needs a micro-batch: '{} STAGE.MICRO-BATCH'", Name(a.key.kind), Name(a.key.kind));
  AddAction(a);
}

void Parser::AddAction(const Action& a) {
  s_.ranks.back().push_back(a);
  action_lines_.back().push_back(line_);
}

void Parser::ParseKind(std::string_view word, Action& a) const {
  const auto [kind, op] = SplitAt(word, ':');
  std::optional<Kind> known;
  if (kind.size() == 1) known = KindOfLetter(kind[0]);
  a.key.kind = known ? *known : static_cast<Kind>(IndexOf(kKindNames, kind, "a kind of action"));
  if (op.empty()) {
    if (kind.size() != word.size()) Fail("the operator is missing after {}", Show(word));
    const bool needs = a.key.kind >= Kind::check;
    if (needs)
      Fail("{} needs an operator: '{}:NAME'{}", Name(a.key.kind), Name(a.key.kind),
           Nearest("", OperatorsOf(a.key.kind)));
    return;
  }
  if (!Registry<Operator>::Has(op) || Side(Registry<Operator>::Find(op).kind) != Side(a.key.kind)) {
    const auto candidates = OperatorsOf(a.key.kind);
    if (candidates.empty())
      Fail("{} takes no operator; leave {} out", Name(a.key.kind), Show(word.substr(kind.size())));
    Fail("{} is no operator of a {}{}", Show(op), Name(a.key.kind), Nearest(op, candidates));
  }
  a.key.op = FindOp(op);
}

void Parser::ParseActionUnit(std::string_view word, Key& key) const {
  const size_t slash = word.find('/');
  const size_t dot = word.find('.', slash == std::string_view::npos ? 0 : slash);
  key.unit = ParseUnit(word.substr(0, dot));
  if (dot != std::string_view::npos)
    key.micro_batch = static_cast<int32_t>(Integer(word.substr(dot + 1), "micro-batch", 0, kMaxMicroBatches - 1));
}

void Parser::ParseAttribute(std::string_view word, Action& a) {
  if (word[0] == '+' || word[0] == '-') {
    if (word.substr(0, 2) == "->") return ParsePeer(word.substr(2), Kind::send, a);
    if (word[0] == '+') word.remove_prefix(1);
    a.key.step = static_cast<int8_t>(Integer(word, "step offset", -128, 127));
    return;
  }
  if (word.substr(0, 2) == "<-") return ParsePeer(word.substr(2), Kind::recv, a);
  const auto [key, value] = SplitAt(word, '=');
  if (key.size() == word.size()) return ParseStream(word, a);
  if (key == "part") {
    has_part_ = true;
    a.key.part = static_cast<int16_t>(Integer(value, "part", INT16_MIN, INT16_MAX));
  } else if (key == "round") {
    a.key.round = static_cast<int8_t>(Integer(value, "round", -128, 127));
  } else if (key == "peer") {
    has_peer_ = true;
    a.peer_or_group = value == "none" ? -1 : static_cast<int32_t>(Integer(value, "rank", 0, kMaxRanks - 1));
  } else if (key == "group") {
    if (a.key.kind != Kind::collective) Fail("a {} has no group", Name(a.key.kind));
    has_peer_ = true;
    a.peer_or_group = ParseGroupOf(value);
  } else if (key == "if") {
    a.guard = static_cast<int16_t>(Integer(value, "predicate", 0, INT16_MAX));
  } else if (key == "bytes") {
    a.bytes = ParseBytes(value);
  } else if (key == "after") {
    ParseAfter(value, a);
  } else {
    Fail("{} is no word of an action{}", Show(key),
         Nearest(key, {"part", "round", "group", "if", "bytes", "after", "peer"}));
  }
}

void Parser::ParseStream(std::string_view word, Action& a) const {
  if (!Done())
    Fail("{} is not understood here{}; only the stream, in the last column, stands alone", Show(word),
         Nearest(word, {kStreamNames.begin(), kStreamNames.end()}));
  a.stream = static_cast<Stream>(IndexOf(kStreamNames, word, "a stream"));
}

void Parser::ParsePeer(std::string_view rank, Kind side, Action& a) {
  if (a.key.kind != side)
    Fail("'{}' is of a {}, not of a {}", side == Kind::send ? "->" : "<-", Name(side), Name(a.key.kind));
  if (rank.empty()) rank = Next("the rank");  // "-> 1"
  a.peer_or_group = static_cast<int32_t>(Integer(rank, "rank", 0, kMaxRanks - 1));
  has_peer_ = true;
}

int32_t Parser::ParseGroupOf(std::string_view value) {
  if (value.empty() || value.front() != '{') return ParseGroupIndex(value);
  if (value.back() != '}') Fail("'}}' is missing after {} (no blanks inside)", Show(value));
  value = value.substr(1, value.size() - 2);
  std::vector<int32_t> ranks;
  while (!value.empty()) {
    const auto [word, rest] = SplitAt(value, ',');
    ExpandInto(ranks, word, "rank", 0, kMaxRanks - 1);
    value = rest;
  }
  const int32_t known = groups_.size();
  const int32_t group = groups_.Of(GroupRanks(std::move(ranks)));
  if (group == known) group_lines_.push_back(line_);
  return group;
}

SizeId Parser::ParseBytes(std::string_view value) {
  if (value.empty()) Fail("the size is missing after 'bytes='");
  if (value[0] == '@')
    return static_cast<SizeId>(Integer(value.substr(1), "size", 0, static_cast<int64_t>(s_.sizes.size()) - 1));
  const std::string symbol = Text(value, "size");
  const auto it = size_ids_.find(symbol);
  if (it != size_ids_.end()) return it->second;
  if (value[0] < '0' || value[0] > '9') {
    std::vector<std::string> known;
    for (const auto& [symbol, id] : size_ids_) {
      known.push_back(symbol);
      if (known.size() == 100) break;
    }
    Fail("there is no size {}{}; a 'size' line of the head, or a number of bytes, would do", Show(value),
         Nearest(value, known));
  }
  if (s_.sizes.size() > std::numeric_limits<SizeId>::max())
    Fail("more than {} sizes", std::numeric_limits<SizeId>::max());
  const int64_t bytes = Integer(value, "number of bytes", 0, std::numeric_limits<int64_t>::max());
  const auto id = static_cast<SizeId>(s_.sizes.size());
  s_.sizes.push_back({std::string(value), bytes});
  size_ids_.emplace(std::string(value), id);
  return id;
}

void Parser::ParseAfter(std::string_view value, Action& a) {
  if (a.extra_edges.count != 0) Fail("'after=' is said a second time");
  if (!value.empty() && value[0] == '@') {
    const auto [first, count] = SplitAt(value.substr(1), '+');
    a.extra_edges.first = static_cast<uint32_t>(Integer(first, "first edge", 0, UINT32_MAX));
    a.extra_edges.count = static_cast<uint16_t>(Integer(count, "number of edges", 0, UINT16_MAX));
    if (uint64_t{a.extra_edges.first} + a.extra_edges.count > s_.edges.size())
      Fail("edges {} of a table with {}", Show(value), s_.edges.size());
    return;
  }
  if (lines_.edge_table != kUnset) Fail("with an 'edge-table' the edges of an action are 'after=@FIRST+COUNT'");
  a.extra_edges.first = static_cast<uint32_t>(s_.edges.size());
  do {
    const auto [ref, rest] = SplitAt(value, ',');
    s_.edges.push_back(ParseRef(ref));
    if (a.extra_edges.count == UINT16_MAX) Fail("more than {} edges of one action", UINT16_MAX);
    ++a.extra_edges.count;
    value = rest;
  } while (!value.empty());
}

}  // namespace penstock::schedule::text
