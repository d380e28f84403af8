// Reads the text form (docs/schedule_format.md): one pass over the lines, then what was left out is derived and every
// index is held against what the file defines. Memory and time are linear in the length of the text, apart from what
// the limits of text_words.h allow.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/nearest.h"
#include "schedule/operators.h"
#include "schedule/text.h"
#include "schedule/text_words.h"

namespace penstock::schedule {
namespace {

using namespace text;  // NOLINT: the shared words of the format

constexpr int kUnset = -1;
constexpr int kOwnStage = -2;  // a stage that was left out: the one of the rank's position

const std::vector<std::string> kHeaderKeys = {"name",     "ranks",     "stages",    "edge",          "micro-batches",
                                              "pipeline", "placement", "replicas",  "replica-of",    "placement-of",
                                              "override", "contract",  "recompute", "stage-options", "group",
                                              "unit",     "shared",    "size",      "edge-table",    "rank"};

// What a message shows of a word of the file.
std::string Show(std::string_view word) {
  const std::string quoted = Quote(word.substr(0, 40));
  return fmt::format("'{}{}'", std::string_view(quoted).substr(1, quoted.size() - 2), word.size() > 40 ? "..." : "");
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view source) : text_(text), source_(source), groups_(s_.groups) {
    s_.name = "hand-written";
  }

  Schedule Run() {
    size_t at = 0;
    while (at < text_.size()) {
      const size_t end = std::min(text_.find('\n', at), text_.size());
      ++line_;
      Tokenize(text_.substr(at, end - at));
      if (!words_.empty()) ParseLine();
      at = end + 1;
    }
    if (!seen_magic_) Fail("there is nothing in it; a schedule starts with the line '{} {}'", kMagic, kVersion);
    Finish();
    return std::move(s_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) const {
    FailAt(line_, fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void FailAt(int line, const std::string& message) const {
    throw UserError(fmt::format("{}:{}: {}", source_, line, message));
  }

  // ---- words ----

  // Splits at blanks, up to a comment ('#' at the start of a word). A double quote starts a string that may hold both.
  void Tokenize(std::string_view line) {
    words_.clear();
    next_ = 0;
    size_t i = 0;
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (i < line.size()) {
      if (blank(line[i])) {
        ++i;
        continue;
      }
      if (line[i] == '#') return;
      const size_t start = i;
      while (i < line.size() && !blank(line[i])) {
        if (line[i] == '"') {
          for (++i; i < line.size() && line[i] != '"'; ++i)
            if (line[i] == '\\') ++i;
          if (i >= line.size()) Fail("a string starts with \" and does not end on this line");
        }
        ++i;
      }
      words_.push_back(line.substr(start, i - start));
    }
  }

  bool Done() const { return next_ == words_.size(); }
  std::string_view Next(std::string_view what) {
    if (Done()) Fail("{} is missing at the end of the line", what);
    return words_[next_++];
  }
  void Expect(std::string_view word) {
    const std::string_view found = Next(word);
    if (found != word) Fail("expected '{}', not {}", word, Show(found));
  }
  void ExpectEnd() const {
    if (!Done()) Fail("{} is one word too many", Show(words_[next_]));
  }

  int64_t Integer(std::string_view word, std::string_view what, int64_t low, int64_t high) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < low || value > high)
      Fail("{} {} is not an integer in {}..{}", what, Show(word), low, high);
    return value;
  }
  std::string Text(std::string_view word, std::string_view what) const {
    if (word.front() != '"') return std::string(word);
    const auto raw = Unquote(word);
    if (!raw) Fail("{} {} is not a string in double quotes (escapes: \\\" \\\\ \\n \\r \\t \\xHH)", what, Show(word));
    return *raw;
  }

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
  std::vector<int32_t> GroupRanks(std::vector<int32_t> ranks) const {
    for (size_t i = 1; i < ranks.size(); ++i)
      if (ranks[i - 1] >= ranks[i]) Fail("ranks of a group ascend, each once; {} follows {}", ranks[i], ranks[i - 1]);
    return ranks;
  }
  Unit ParseUnit(std::string_view word) const {
    Unit unit;
    if (word[0] == 'c') {
      const size_t slash = word.find('/');
      if (slash == std::string_view::npos) Fail("unit {} is not STAGE or cCOMPONENT/STAGE", Show(word));
      unit.component = static_cast<uint8_t>(Integer(word.substr(1, slash - 1), "component", 0, 255));
      word.remove_prefix(slash + 1);
    }
    unit.stage = static_cast<uint16_t>(Integer(word, "stage", 0, kMaxStages));
    return unit;
  }
  // "3@7": 3, and 7 when there is one.
  std::pair<std::string_view, std::string_view> SplitAt(std::string_view word, char separator) const {
    const size_t at = word.find(separator);
    if (at == std::string_view::npos) return {word, {}};
    return {word.substr(0, at), word.substr(at + 1)};
  }
  template <typename Names>
  int IndexOf(const Names& names, std::string_view word, std::string_view what) const {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == word) return static_cast<int>(i);
    Fail("{} is not {}{}", Show(word), what, Nearest(word, {names.begin(), names.end()}));
  }
  static std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
    return DidYouMean(word.substr(0, 40), candidates);
  }

  // ---- lines ----

  void ParseLine() {
    if (!seen_magic_) return ParseMagic();
    const std::string_view word = words_[0];
    if (word == "rank") return ParseRank();
    if (!s_.ranks.empty()) return ParseActionLine();
    next_ = 1;
    ParseHeader(word);
    ExpectEnd();
  }

  void ParseMagic() {
    if (words_.size() < 2 || words_[0] != "penstock" || words_[1] != "schedule")
      Fail("this is not a schedule: its first line has to be '{} {}', not {}", kMagic, kVersion, Show(words_[0]));
    next_ = 2;
    const int64_t version = Integer(Next("version"), "version", 1, std::numeric_limits<int32_t>::max());
    if (version != kVersion) Fail("schedule format version {}; this build reads version {}", version, kVersion);
    ExpectEnd();
    seen_magic_ = true;
  }

  // A key that may stand once.
  void Once(int& line_of) const {
    if (line_of != kUnset) Fail("{} is said a second time; the first is in line {}", Show(words_[0]), line_of);
    line_of = line_;
  }
  int64_t OnlyInteger(int64_t low, int64_t high) { return Integer(Next("a number"), words_[0], low, high); }

  void ParseHeader(std::string_view key) {
    if (key == "name") {
      Once(lines_.name);
      s_.name = Text(Next("the name"), "name");
    } else if (key == "ranks") {
      Once(lines_.ranks);
      num_ranks_ = static_cast<int>(OnlyInteger(0, kMaxRanks));
    } else if (key == "stages") {
      Once(lines_.stages);
      num_stages_ = static_cast<int>(OnlyInteger(0, kMaxStages));
    } else if (key == "edge") {
      ParseEdge();
    } else if (key == "micro-batches") {
      Once(lines_.micro_batches);
      micro_batches_ = static_cast<int>(OnlyInteger(0, kMaxMicroBatches));
    } else if (key == "pipeline") {
      Once(lines_.pipeline);
      s_.route.pipeline_size = static_cast<int>(OnlyInteger(1, kMaxRanks));
    } else if (key == "placement") {
      ParsePlacement();
    } else if (key == "replicas") {
      Once(lines_.replicas);
      replicas_ = static_cast<int>(OnlyInteger(1, kMaxRanks));
    } else if (key == "replica-of") {
      Once(lines_.replicas);
      s_.route.replica_of = IntegersToEnd<int32_t>("replica", 0, kMaxRanks - 1);
      explicit_replicas_ = true;
    } else if (key == "placement-of") {
      Once(lines_.placement_of);
      s_.route.placement_of = IntegersToEnd<uint8_t>("placement", 0, kMaxPlacements);
      if (s_.route.placement_of.empty()) Fail("the placements are missing at the end of the line");
    } else if (key == "override") {
      ParseOverride();
    } else if (key == "contract") {
      Once(lines_.contract);
      while (!Done()) ParseContractWord(Next("a word"));
    } else if (key == "recompute") {
      Once(lines_.recompute);
      if (words_.size() == 2 && words_[1] == "none")
        next_ = 2;
      else
        recompute_ = IntegersToEnd<int32_t>("stage", 0, kMaxStages - 1);
    } else if (key == "stage-options") {
      Once(lines_.stage_options);
      Expect("none");
    } else if (key == "group") {
      ParseGroup();
    } else if (key == "unit") {
      ParseUnitLine();
    } else if (key == "shared") {
      if (lines_.shared == kUnset) lines_.shared = line_;
      shared_.push_back(IntegersToEnd<uint16_t>("stage", 0, kMaxStages - 1));
      if (shared_.back().empty()) Fail("the stages that share a parameter are missing at the end of the line");
    } else if (key == "size") {
      ParseSize();
    } else if (key == "edge-table") {
      Once(lines_.edge_table);
      while (!Done()) s_.edges.push_back(ParseRef(Next("an action")));
    } else {
      const bool action = AsCompact(key) ||
                          std::find(kKindNames.begin(), kKindNames.end(), SplitAt(key, ':').first) != kKindNames.end();
      if (action) Fail("action {} stands before the first 'rank' line", Show(key));
      Fail("{} is no key of a schedule's head{}", Show(key), Nearest(key, kHeaderKeys));
    }
  }

  void ParseEdge() {
    if (lines_.edge == kUnset) lines_.edge = line_;
    if (words_.size() == 2 && words_[1] == "none") {
      if (!edges_.empty()) Fail("'edge none' after an edge");
      next_ = 2;
      no_edges_ = true;
      return;
    }
    if (no_edges_) Fail("an edge after 'edge none'");
    StageEdge edge;
    edge.from = static_cast<uint16_t>(Integer(Next("the stage before the edge"), "stage", 0, kMaxStages - 1));
    Expect("->");
    edge.to = static_cast<uint16_t>(Integer(Next("the stage after the edge"), "stage", 0, kMaxStages - 1));
    if (!Done()) edge.boundary = Text(Next("the boundary"), "boundary");
    edges_.push_back(std::move(edge));
  }

  void ParsePlacement() {
    if (lines_.placement == kUnset) lines_.placement = line_;
    if (words_.size() == 2 && words_[1] == "none") {
      next_ = 2;
      no_placement_ = true;
      return;
    }
    if (static_cast<int>(placements_.size()) == kMaxPlacements + 1) Fail("more than {} placements", kMaxPlacements + 1);
    Placement placement;
    placement.line = line_;
    const std::string_view first = Next("the placement");
    if (first[0] >= '0' && first[0] <= '9') {
      next_ = 1;
      placement.positions = IntegersToEnd<int>("position", 0, kMaxRanks - 1);
    } else {
      placement.name = PlacementNames()[IndexOf(PlacementNames(), first, "a placement")];
    }
    placements_.push_back(std::move(placement));
  }

  void ParseOverride() {
    if (lines_.override_line == kUnset) lines_.override_line = line_;
    const auto [stage, micro_batch] = SplitAt(Next("STAGE.MICRO-BATCH"), '.');
    const std::pair<int, int> at(Integer(stage, "stage", 0, kMaxStages - 1),
                                 Integer(micro_batch, "micro-batch", 0, kMaxMicroBatches - 1));
    Expect("->");
    const int rank = static_cast<int>(Integer(Next("the rank"), "rank", 0, kMaxRanks - 1));
    if (!s_.route.overrides.emplace(at, rank).second) Fail("{}.{} is routed a second time", at.first, at.second);
  }

  void ParseContractWord(std::string_view word) {
    const auto [key, value] = SplitAt(word, '=');
    Contract& c = s_.contract;
    if (key == "coverage") {
      c.coverage = static_cast<CoverageRule>(IndexOf(kCoverageRuleNames, value, "a coverage rule"));
    } else if (key == "staleness") {
      c.staleness = static_cast<int>(Integer(value, "staleness", 0, std::numeric_limits<int>::max()));
    } else if (key == "equivalence") {
      c.equivalence = static_cast<Equivalence>(IndexOf(kEquivalenceNames, value, "an equivalence"));
    } else if (key == "deadlock-free") {
      c.deadlock_free.fill(false);
      if (value == "none") return;
      if (value.empty()) Fail("the transports are missing after 'deadlock-free='; 'none' is one way to say it");
      for (std::string_view rest = value; !rest.empty();) {
        const auto [name, more] = SplitAt(rest, ',');
        c.deadlock_free[IndexOf(kTransportNames, name, "a transport")] = true;
        rest = more;
      }
    } else if (key == "reason") {
      if (value.empty()) Fail("the reason is missing after 'reason='");
      c.reason = Text(value, "reason");
    } else {
      Fail("{} is no word of a contract{}", Show(key),
           Nearest(key, {"coverage", "staleness", "equivalence", "deadlock-free", "reason"}));
    }
  }

  void ParseGroup() {
    const int64_t index = Integer(Next("the number of the group"), "group", 0, std::numeric_limits<int32_t>::max());
    if (index != groups_.size())
      Fail("group {} follows group {}; groups are numbered 0, 1, ...", index, groups_.size() - 1);
    Expect("=");
    groups_.Add(GroupRanks(IntegersToEnd<int32_t>("rank", 0, kMaxRanks - 1)));
    group_lines_.push_back(line_);
  }

  void ParseUnitLine() {
    if (lines_.unit == kUnset) lines_.unit = line_;
    if (words_.size() == 2 && words_[1] == "none") {
      if (!s_.holders.units.empty()) Fail("'unit none' after a unit");
      next_ = 2;
      no_units_ = true;
      return;
    }
    if (no_units_) Fail("a unit after 'unit none'");
    ParameterUnit unit;
    unit.unit = ParseUnit(Next("the unit"));
    if (unit.unit.stage != s_.holders.units.size())
      Fail("unit {} stands where unit {} is due; units are numbered 0, 1, ...", unit.unit.stage,
           s_.holders.units.size());
    while (!Done()) {
      const std::string_view word = Next("a word");
      const auto [key, value] = SplitAt(word, '=');
      if (key == "form") {
        unit.form = static_cast<BufferForm>(IndexOf(kBufferFormNames, value, "a form"));
      } else if (key == "holders") {
        unit.group = ParseGroupIndex(value);
      } else if (key == "use") {
        const auto [stage, group] = SplitAt(value, '@');
        ParameterUse use;
        use.stage = static_cast<uint16_t>(Integer(stage, "stage", 0, kMaxStages - 1));
        if (!group.empty()) use.group = ParseGroupIndex(group);
        unit.uses.push_back(use);
      } else {
        Fail("{} is no word of a unit{}", Show(key), Nearest(key, {"form", "holders", "use"}));
      }
    }
    s_.holders.units.push_back(std::move(unit));
    unit_lines_.push_back(line_);
  }

  void ParseSize() {
    if (s_.sizes.size() > std::numeric_limits<SizeId>::max())
      Fail("more than {} sizes", std::numeric_limits<SizeId>::max());
    Size size;
    size.symbol = Text(Next("the symbol"), "symbol");
    size.upper_bound = Integer(Next("the upper bound in bytes"), "upper bound", std::numeric_limits<int64_t>::min(),
                               std::numeric_limits<int64_t>::max());
    size_ids_.emplace(size.symbol, static_cast<SizeId>(s_.sizes.size()));
    s_.sizes.push_back(std::move(size));
  }

  int32_t ParseGroupIndex(std::string_view word) const {
    if (groups_.size() == 0) Fail("group {} is named, but there is no 'group' line before this one", Show(word));
    return static_cast<int32_t>(Integer(word, "group", 0, groups_.size() - 1));
  }
  ActionRef ParseRef(std::string_view word) const {
    const auto [rank, index] = SplitAt(word, ':');
    return {static_cast<int32_t>(Integer(rank, "rank", 0, kMaxRanks - 1)),
            static_cast<int32_t>(Integer(index, "index of an action", 0, std::numeric_limits<int32_t>::max()))};
  }

  // ---- actions ----

  void ParseRank() {
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

  static bool IsMessage(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

  struct CompactWord {
    int stage = kOwnStage;
    Kind kind = Kind::forward;
    std::string_view micro_batch;
  };
  // "F3", "2B10": nullopt when it is not of that form.
  static std::optional<CompactWord> AsCompact(std::string_view word) {
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

  void ParseCompact() {
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

  void AddAction(const Action& a) {
    s_.ranks.back().push_back(a);
    action_lines_.back().push_back(line_);
  }

  void ParseActionLine() {
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

  static bool IsUnitWord(std::string_view word) {
    return (word[0] >= '0' && word[0] <= '9') ||
           (word.size() > 1 && word[0] == 'c' && word[1] >= '0' && word[1] <= '9');
  }

  void ParseKind(std::string_view word, Action& a) const {
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

  // A message operator serves send and recv.
  static Kind Side(Kind kind) { return kind == Kind::recv ? Kind::send : kind; }
  static std::vector<std::string> OperatorsOf(Kind kind) {
    std::vector<std::string> names;
    for (const auto& [name, op] : Registry<Operator>::All())
      if (Side(op.kind) == Side(kind)) names.push_back(name);
    return names;
  }

  void ParseActionUnit(std::string_view word, Key& key) const {
    const size_t slash = word.find('/');
    const size_t dot = word.find('.', slash == std::string_view::npos ? 0 : slash);
    key.unit = ParseUnit(word.substr(0, dot));
    if (dot != std::string_view::npos)
      key.micro_batch = static_cast<int32_t>(Integer(word.substr(dot + 1), "micro-batch", 0, kMaxMicroBatches - 1));
  }

  void ParseAttribute(std::string_view word, Action& a) {
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

  void ParseStream(std::string_view word, Action& a) const {
    if (!Done())
      Fail("{} is not understood here{}; only the stream, in the last column, stands alone", Show(word),
           Nearest(word, {kStreamNames.begin(), kStreamNames.end()}));
    a.stream = static_cast<Stream>(IndexOf(kStreamNames, word, "a stream"));
  }

  void ParsePeer(std::string_view rank, Kind side, Action& a) {
    if (a.key.kind != side)
      Fail("'{}' is of a {}, not of a {}", side == Kind::send ? "->" : "<-", Name(side), Name(a.key.kind));
    if (rank.empty()) rank = Next("the rank");  // "-> 1"
    a.peer_or_group = static_cast<int32_t>(Integer(rank, "rank", 0, kMaxRanks - 1));
    has_peer_ = true;
  }

  int32_t ParseGroupOf(std::string_view value) {
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

  SizeId ParseBytes(std::string_view value) {
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

  void ParseAfter(std::string_view value, Action& a) {
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

  // ---- what was left out, and whether the indices exist ----

  void Finish() {
    if (num_ranks_ != kUnset && num_ranks_ != s_.num_ranks())
      Fail("the file ends after {} 'rank' lists, but line {} says {} ranks", s_.num_ranks(), lines_.ranks, num_ranks_);
    if (s_.ranks.empty() && num_ranks_ != 0)
      Fail("there is no 'rank' list in it; after the head write for every rank 'rank N' and its actions, one a line");
    FinishReplicas();
    FinishStages();
    FinishPlacements();
    CheckRoute();
    FinishOptions();
    FinishMessages();
    CheckGroups();
    FinishUnits();
    CheckActions();
  }

  void FinishReplicas() {
    Route& route = s_.route;
    if (explicit_replicas_) {
      if (micro_batches_ != kUnset && micro_batches_ != route.num_micro_batches())
        FailAt(lines_.replicas, fmt::format("replicas of {} micro-batches, but line {} says {}",
                                            route.num_micro_batches(), lines_.micro_batches, micro_batches_));
      replicas_ = 1;
      for (const int32_t r : route.replica_of) replicas_ = std::max(replicas_, r + 1);
    } else {
      if (micro_batches_ == kUnset) {
        int32_t last = -1;
        for (const auto& list : s_.ranks)
          for (const Action& a : list) last = std::max(last, a.key.micro_batch);
        micro_batches_ = last + 1;
      }
      route.replica_of = ContiguousReplicas(micro_batches_, replicas_);
    }
    if (lines_.pipeline == kUnset && !s_.ranks.empty()) {
      if (s_.num_ranks() % replicas_ != 0)
        FailAt(lines_.replicas,
               fmt::format("{} ranks are no multiple of {} replicas; write 'pipeline SIZE' when some ranks are in none",
                           s_.num_ranks(), replicas_));
      route.pipeline_size = s_.num_ranks() / replicas_;
    }
    // A stage that was left out is the one of the rank's position.
    for (const ActionRef ref : own_stage_) {
      const int position = ref.rank % route.pipeline_size;
      if (position >= kMaxStages)
        FailAt(action_lines_[ref.rank][ref.index], fmt::format("stage {} is not in 0..{}", position, kMaxStages - 1));
      s_.ranks[ref.rank][ref.index].key.unit.stage = static_cast<uint16_t>(position);
    }
  }

  void FinishStages() {
    if (num_stages_ == kUnset) {
      int last = -1;
      for (const auto& list : s_.ranks)
        for (const Action& a : list)
          if (IsComputeKind(a.key.kind)) last = std::max(last, int{a.key.unit.stage});
      num_stages_ = last + 1;
    }
    if (edges_.empty() && !no_edges_) {
      s_.graph = StageGraph::Chain(num_stages_);
      return;
    }
    try {
      s_.graph = StageGraph(num_stages_, std::move(edges_));
    } catch (const UserError& e) {
      FailAt(lines_.edge, e.what());
    }
  }

  void FinishPlacements() {
    Route& route = s_.route;
    if (no_placement_ && placements_.empty()) return;
    const int p = route.pipeline_size;
    if (placements_.empty()) {
      if (num_stages_ > 0) route.placements.push_back(PlacementOfActions());
      return;
    }
    for (Placement& placement : placements_) {
      if (!placement.name.empty()) {
        expanded_ += num_stages_;
        if (expanded_ > kMaxExpanded) FailAt(placement.line, "too many placements of too many stages");
        try {
          placement.positions = MakePlacement(placement.name, p, num_stages_);
        } catch (const UserError& e) {
          FailAt(placement.line, e.what());
        }
      }
      if (static_cast<int>(placement.positions.size()) != num_stages_)
        FailAt(placement.line, fmt::format("{} positions for {} stages", placement.positions.size(), num_stages_));
      for (const int position : placement.positions)
        if (position >= p)
          FailAt(placement.line, fmt::format("position {} is not in 0..{} (pipeline {})", position, p - 1, p));
      route.placements.push_back(std::move(placement.positions));
    }
  }

  // Stage s is on the position of the rank that computes on it first.
  std::vector<int> PlacementOfActions() const {
    std::vector<int> positions(num_stages_, kUnset);
    for (int r = 0; r < s_.num_ranks(); ++r)
      for (const Action& a : s_.ranks[r])
        if (IsComputeKind(a.key.kind) && a.key.unit.stage < num_stages_ && positions[a.key.unit.stage] == kUnset)
          positions[a.key.unit.stage] = r % s_.route.pipeline_size;
    for (int s = 0; s < num_stages_; ++s) {
      if (positions[s] == kUnset)
        FailAt(line_, fmt::format("no rank computes on stage {}; write 'placement' followed by one of {}, or by the "
                                  "position of every stage",
                                  s, "linear, block, loop, v"));
    }
    return positions;
  }

  void CheckRoute() const {
    const Route& route = s_.route;
    const int m = route.num_micro_batches();
    if (!route.placement_of.empty() && static_cast<int>(route.placement_of.size()) != m)
      FailAt(lines_.placement_of,
             fmt::format("placements of {} micro-batches, but there are {}", route.placement_of.size(), m));
    for (const int placement : route.placement_of)
      if (placement >= static_cast<int>(route.placements.size()))
        FailAt(lines_.placement_of, fmt::format("placement {} of {}", placement, route.placements.size()));
    if (int64_t{replicas_} * route.pipeline_size > std::max(1, s_.num_ranks()))
      FailAt(line_, fmt::format("{} replicas of a pipeline of {} are more than {} ranks", replicas_,
                                route.pipeline_size, s_.num_ranks()));
    for (const auto& [at, rank] : route.overrides) {
      if (at.first >= num_stages_ || at.second >= m || rank >= s_.num_ranks() || route.placements.empty())
        FailAt(lines_.override_line,
               fmt::format("override {}.{} -> {}: there are {} stages, {} micro-batches and {} ranks", at.first,
                           at.second, rank, num_stages_, m, s_.num_ranks()));
    }
  }

  void FinishOptions() {
    if (lines_.stage_options != kUnset) {
      if (!recompute_.empty()) FailAt(lines_.recompute, "stages with recomputation, but 'stage-options none'");
      return;
    }
    s_.stage_options.resize(num_stages_);
    for (const int s : recompute_) {
      if (s >= num_stages_) FailAt(lines_.recompute, fmt::format("stage {} is not in 0..{}", s, num_stages_ - 1));
      s_.stage_options[s].recompute = true;
    }
    if (lines_.recompute != kUnset) return;
    for (const auto& list : s_.ranks)
      for (const Action& a : list)
        if (a.key.kind == Kind::recompute && a.key.unit.stage < num_stages_)
          s_.stage_options[a.key.unit.stage].recompute = true;
  }

  // The edge of a message follows from the stage that produced it, the peer from the edge and the route.
  void FinishMessages() {
    for (const ActionRef ref : own_edge_) {
      Key& key = s_.ranks[ref.rank][ref.index].key;
      const auto edge = EdgeOfMessage(s_.graph, key);
      if (!edge)
        FailAt(LineOf(ref),
               "which edge of the stage graph does this message carry? Not exactly one fits its operator and stage; "
               "say 'part=EDGE'");
      key.part = static_cast<int16_t>(*edge);
    }
    const auto& edges = s_.graph.edges();
    for (const ActionRef ref : own_peer_) {
      Action& a = s_.ranks[ref.rank][ref.index];
      const Key& key = a.key;
      const bool send = key.kind == Kind::send;
      if (key.part < 0 || key.part >= static_cast<int>(edges.size()) || key.micro_batch < 0 ||
          key.micro_batch >= s_.num_micro_batches() || s_.route.placements.empty())
        FailAt(LineOf(ref),
               fmt::format("the other side of this message does not follow from its edge and micro-batch; say '{}RANK'",
                           send ? "->" : "<-"));
      const StageEdge& edge = edges[key.part];
      const int here = key.unit.stage == edge.from ? edge.from : edge.to;
      const int there = here == edge.from ? edge.to : edge.from;
      a.peer_or_group = s_.route.rank_of(send ? there : here, key.micro_batch);
    }
  }
  int LineOf(ActionRef ref) const { return action_lines_[ref.rank][ref.index]; }

  void CheckGroups() const {
    for (size_t g = 0; g < s_.groups.size(); ++g)
      if (!s_.groups[g].empty() && s_.groups[g].back() >= s_.num_ranks())
        FailAt(group_lines_[g],
               fmt::format("rank {} of a group is not in 0..{}", s_.groups[g].back(), s_.num_ranks() - 1));
  }

  void FinishUnits() {
    if (lines_.unit == kUnset) {
      if (num_stages_ + shared_.size() > static_cast<size_t>(kMaxStages))
        FailAt(lines_.shared, fmt::format("more than {} parameter units", kMaxStages));
      for (const auto& list : shared_)
        for (const uint16_t s : list)
          if (s >= num_stages_) FailAt(lines_.shared, fmt::format("stage {} is not in 0..{}", s, num_stages_ - 1));
      try {
        s_.holders = DefaultHolders(s_, shared_, groups_);
      } catch (const UserError& e) {
        FailAt(line_, e.what());
      }
      return;
    }
    if (lines_.shared != kUnset)
      FailAt(lines_.shared, "'shared' and 'unit' lines exclude each other; a unit with several use= is shared");
    for (size_t u = 0; u < s_.holders.units.size(); ++u)
      for (const ParameterUse& use : s_.holders.units[u].uses)
        if (use.stage >= num_stages_)
          FailAt(unit_lines_[u], fmt::format("stage {} is not in 0..{}", use.stage, num_stages_ - 1));
  }

  void CheckActions() const {
    const int m = s_.num_micro_batches();
    const int units = std::max(num_stages_, static_cast<int>(s_.holders.units.size()));
    for (int r = 0; r < s_.num_ranks(); ++r) {
      for (size_t i = 0; i < s_.ranks[r].size(); ++i) {
        const Action& a = s_.ranks[r][i];
        const auto fail = [&](const std::string& message) { FailAt(action_lines_[r][i], message); };
        const bool message = IsMessage(a.key.kind);
        const int stage = a.key.unit.stage;
        const bool staged = IsComputeKind(a.key.kind) || message;
        const int end = staged ? num_stages_ : units;
        if (stage >= end && !(a.key.kind == Kind::check && stage == 0))
          fail(fmt::format("{} {} is not in 0..{}", staged ? "stage" : "unit", stage, end - 1));
        if (a.key.micro_batch >= m) fail(fmt::format("micro-batch {} is not in 0..{}", a.key.micro_batch, m - 1));
        if (a.key.kind != Kind::collective && a.peer_or_group >= s_.num_ranks())
          fail(fmt::format("rank {} is not in 0..{}", a.peer_or_group, s_.num_ranks() - 1));
        if (message && (a.key.part < 0 || a.key.part >= static_cast<int>(s_.graph.edges().size())))
          fail(fmt::format("part {} of a message is its edge of the stage graph, and there are {} edges", a.key.part,
                           s_.graph.edges().size()));
        for (uint32_t e = 0; e < a.extra_edges.count; ++e)
          CheckEdge(s_.edges[a.extra_edges.first + e], action_lines_[r][i]);
      }
    }
    for (const ActionRef e : s_.edges) CheckEdge(e, lines_.edge_table);
  }

  void CheckEdge(ActionRef e, int line) const {
    if (e.rank >= s_.num_ranks() || e.index >= static_cast<int64_t>(s_.ranks[e.rank].size()))
      FailAt(line, fmt::format("there is no action {}:{} (RANK:INDEX, both from 0)", e.rank, e.index));
  }

  struct Placement {
    int line = 0;
    std::string name;            // or
    std::vector<int> positions;  // of every stage
  };
  // Where a key of the head was said; kUnset when it was not.
  struct Lines {
    int name = kUnset, ranks = kUnset, stages = kUnset, edge = kUnset, micro_batches = kUnset, pipeline = kUnset,
        placement = kUnset, replicas = kUnset, placement_of = kUnset, override_line = kUnset, contract = kUnset,
        recompute = kUnset, stage_options = kUnset, unit = kUnset, shared = kUnset, edge_table = kUnset;
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

}  // namespace

Schedule ParseSchedule(std::string_view text, std::string_view source) { return Parser(text, source).Run(); }

}  // namespace penstock::schedule
